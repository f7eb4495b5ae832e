// SPDX-License-Identifier: MIT
// Energies and forces of many systems at once: of a session, or of a function in a test.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/error.h"
#include "core/system_view.h"
#include "core/threads.h"
#include "engine/session.h"

namespace mlff {

struct BatchAnswer {
    double energy = 0;           // eV
    std::vector<double> forces;  // [atom][3], eV/angstrom
    bool needs_virial = false;   // a question: without a virial, this is an error
    Mat3 virial{};               // eV; zero if the model provides none
    std::optional<Error> error;  // why this system has no results; the others have theirs
};

class BatchForces {
public:
    virtual ~BatchForces() = default;
    // answers[i] belongs to systems[i].
    virtual void compute(std::span<const SystemView> systems, std::span<BatchAnswer* const> answers) = 0;
    virtual ThreadTeam& team() = 0;
};

// On the CPU every system is evaluated alone, so that its results are bit for bit those that it has alone: small
// systems one on each thread, others one after the other on all threads. On a GPU they are one batch, on which the last
// digits depend.
class SessionBatch : public BatchForces {
public:
    enum class Way { automatic, alone, as_one_batch };
    // `session` is one of this model with these options, and must outlive this.
    SessionBatch(Session& session, std::shared_ptr<const Model> model, const SessionOptions& options,
                 Way way = Way::automatic);
    // Always as one batch, which needs no sessions of threads.
    explicit SessionBatch(Session& session) : session_(session), is_one_batch_(true) {}
    // Throws Error unless a system is to blame. Results may be not finite.
    void compute(std::span<const SystemView> systems, std::span<BatchAnswer* const> answers) override;
    ThreadTeam& team() override { return session_.team(); }

    // As many atoms as keep the device busy.
    int64_t most_atoms() const;

private:
    Results wanted(const SystemView& system, BatchAnswer& answer) const;
    void compute_alone(Session& session, const SystemView& system, BatchAnswer& answer) const;
    void compute_over_threads(std::span<const SystemView> systems, std::span<BatchAnswer* const> answers);
    void compute_as_batch(std::span<const SystemView> systems, std::span<BatchAnswer* const> answers);

    Session& session_;
    std::shared_ptr<const Model> model_;  // of the sessions of threads
    SessionOptions worker_options_;
    bool is_one_batch_;
    std::vector<std::unique_ptr<Session>> workers_;  // [thread of the team], of one thread each
    std::vector<size_t> small_;                      // systems that are evaluated on one thread
    std::vector<Results> results_;
};

// Calls work(i) for i in [0, count), several in a chunk.
void run_over(ThreadTeam& team, size_t count, const std::function<void(size_t)>& work);

}  // namespace mlff
