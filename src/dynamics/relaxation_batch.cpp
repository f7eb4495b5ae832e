// SPDX-License-Identifier: MIT
#include "dynamics/relaxation_batch.h"

#include <algorithm>
#include <iterator>

namespace mlff {

void RelaxationBatch::add(int64_t id, Relaxation relaxation) {
    atom_count_ += static_cast<int64_t>(relaxation.particles().atom_count());
    members_.push_back({id, std::move(relaxation), {}, {}});
}

void RelaxationBatch::count_atoms() {
    atom_count_ = 0;
    for (const Member& member : members_)
        atom_count_ += static_cast<int64_t>(member.relaxation.particles().atom_count());
}

void RelaxationBatch::drop_after(int64_t id) {
    std::erase_if(members_, [&](const Member& member) { return member.id > id; });
    count_atoms();
}

std::vector<RelaxationBatch::Member> RelaxationBatch::step() {
    systems_.clear();
    answers_.clear();
    for (Member& member : members_) {
        systems_.push_back(member.relaxation.particles().view());
        member.answer.needs_virial = member.relaxation.moves_cell();
        answers_.push_back(&member.answer);
    }
    forces_.compute(systems_, answers_);
    run_over(forces_.team(), members_.size(), [&](size_t i) {
        Member& member = members_[i];
        if (member.is_done()) return;
        if (member.answer.error) {
            member.error = member.answer.error;
            return;
        }
        try {
            member.relaxation.advance(member.answer.energy, member.answer.forces, member.answer.virial);
        } catch (const Error& error) {
            member.error = error;
        }
    });
    int64_t done_atoms = 0;
    bool has_error = false;  // what fails once would fail again
    for (const Member& member : members_) {
        if (member.is_done()) done_atoms += static_cast<int64_t>(member.relaxation.particles().atom_count());
        has_error |= member.error.has_value();
    }
    std::vector<Member> leaving;
    if (!has_error && static_cast<double>(done_atoms) < least_turnover_ * static_cast<double>(atom_count_))
        return leaving;
    const auto end_of_staying =
        std::stable_partition(members_.begin(), members_.end(), [](const Member& member) { return !member.is_done(); });
    std::move(end_of_staying, members_.end(), std::back_inserter(leaving));
    members_.erase(end_of_staying, members_.end());
    count_atoms();
    return leaving;
}

void relax_together(BatchForces& forces, std::span<Relaxation> relaxations) {
    RelaxationBatch batch(forces);
    for (size_t i = 0; i < relaxations.size(); ++i) batch.add(static_cast<int64_t>(i), std::move(relaxations[i]));
    while (!batch.is_empty())
        for (RelaxationBatch::Member& member : batch.step()) {
            if (member.error)
                throw Error(member.error->status(), relaxations.size() > 1
                                                        ? concat("structure ", member.id, ": ", member.error->what())
                                                        : member.error->what());
            relaxations[static_cast<size_t>(member.id)] = std::move(member.relaxation);
        }
}

void relax_together(Session& session, std::span<Relaxation> relaxations) {
    SessionBatch forces(session);
    relax_together(forces, relaxations);
}

}  // namespace mlff
