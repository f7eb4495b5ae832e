// SPDX-License-Identifier: MIT
#include "dynamics/batch_forces.h"

#include <algorithm>

namespace mlff {

namespace {

constexpr int64_t kFewAtoms = 256;  // atoms: fewer do not keep several threads busy

}  // namespace

SessionBatch::SessionBatch(Session& session, std::shared_ptr<const Model> model, const SessionOptions& options, Way way)
    : session_(session),
      model_(std::move(model)),
      worker_options_(options),
      is_one_batch_(way == Way::as_one_batch || (way == Way::automatic && session.device().is_gpu())) {
    worker_options_.thread_count = 1;
    worker_options_.device = session.device_name();
}

int64_t SessionBatch::most_atoms() const {
    constexpr int64_t kForThread = 256;  // atoms of ten molecules, so that no thread waits long for another
    if (is_one_batch_ || session_.most_batch_atoms() == 0) return session_.most_batch_atoms();
    return kForThread * session_.thread_count();
}

Results SessionBatch::wanted(const SystemView& system, BatchAnswer& answer) const {
    answer.error.reset();
    answer.forces.resize(static_cast<size_t>(3 * system.atom_count));
    Results results;
    results.outputs.energy = &answer.energy;
    results.outputs.forces = answer.forces.data();
    if (answer.needs_virial || session_.model().gives_virial(system)) results.outputs.virial = answer.virial[0].data();
    return results;
}

void SessionBatch::compute_alone(Session& session, const SystemView& system, BatchAnswer& answer) const {
    const Results results = wanted(system, answer);
    try {
        session.evaluate_unchecked({&system, 1}, {&results, 1});
    } catch (const Error& error) {
        if (error.status() != Status::system) throw;
        answer.error = error;
    }
}

void SessionBatch::compute(std::span<const SystemView> systems, std::span<BatchAnswer* const> answers) {
    if (is_one_batch_ && systems.size() > 1)
        compute_as_batch(systems, answers);
    else
        compute_over_threads(systems, answers);
}

void SessionBatch::compute_over_threads(std::span<const SystemView> systems, std::span<BatchAnswer* const> answers) {
    ThreadTeam& team = session_.team();
    const bool has_threads = !is_one_batch_ && team.size() > 1 && session_.most_batch_atoms() > 0;
    small_.clear();
    for (size_t i = 0; has_threads && i < systems.size(); ++i)
        if (systems[i].atom_count < kFewAtoms) small_.push_back(i);
    if (small_.size() < 2) small_.clear();
    for (size_t i = 0, next = 0; i < systems.size(); ++i) {
        if (next < small_.size() && small_[next] == i)
            ++next;
        else
            compute_alone(session_, systems[i], *answers[i]);
    }
    if (small_.empty()) return;
    while (workers_.size() < static_cast<size_t>(team.size()))
        workers_.push_back(std::make_unique<Session>(model_, worker_options_));
    const auto compute_one = [&](int64_t chunk, int worker) {
        const size_t i = small_[static_cast<size_t>(chunk)];
        compute_alone(*workers_[static_cast<size_t>(worker)], systems[i], *answers[i]);
    };
    team.run(static_cast<int64_t>(small_.size()), std::ref(compute_one));
}

void SessionBatch::compute_as_batch(std::span<const SystemView> systems, std::span<BatchAnswer* const> answers) {
    results_.clear();
    for (size_t i = 0; i < systems.size(); ++i) results_.push_back(wanted(systems[i], *answers[i]));
    try {
        session_.evaluate_unchecked(systems, results_);
    } catch (const Error& error) {
        if (error.status() != Status::system) throw;
        // The message may not say which system it is, and the others are to have results.
        for (size_t i = 0; i < systems.size(); ++i) compute_alone(session_, systems[i], *answers[i]);
    }
}

void run_over(ThreadTeam& team, size_t count, const std::function<void(size_t)>& work) {
    constexpr size_t kPerChunk = 8;  // a few microseconds of work
    const auto run_chunk = [&](int64_t chunk, int) {
        const size_t begin = static_cast<size_t>(chunk) * kPerChunk;
        for (size_t i = begin; i < std::min(begin + kPerChunk, count); ++i) work(i);
    };
    team.run(static_cast<int64_t>((count + kPerChunk - 1) / kPerChunk), std::ref(run_chunk));
}

}  // namespace mlff
