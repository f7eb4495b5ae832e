// SPDX-License-Identifier: MIT
#include "dynamics/many_dynamics.h"

#include <algorithm>

namespace mlff {

double ManyDynamics::GivenForces::compute(const SystemView& system, double* forces, double* virial) {
    (void)system;
    ++count;
    if (answer.error) throw *answer.error;
    std::copy(answer.forces.begin(), answer.forces.end(), forces);
    if (virial) std::copy_n(answer.virial[0].data(), 9, virial);
    return answer.energy;
}

ManyDynamics::ManyDynamics(BatchForces& forces, std::vector<DynamicsStart> starts, const StabilityLimits& limits)
    : forces_(forces), members_(starts.size()) {
    for (size_t i = 0; i < starts.size(); ++i) {
        members_[i].ended = starts[i].ended;
        if (!goes_on(i)) continue;
        going_.push_back(i);
        systems_.push_back(starts[i].state ? starts[i].state->particles.view() : starts[i].particles.view());
        members_[i].given->answer.needs_virial = starts[i].options.wants_virial || starts[i].options.barostat;
    }
    compute_forces(systems_, going_);
    for_each(going_, [&](size_t i) {
        DynamicsStart& start = starts[i];
        Member& member = members_[i];
        if (start.state) {
            // The answer belongs to the positions of the state: it must not be taken for those of another search.
            start.state->searched_positions = start.state->particles.positions;
            start.state->searched_cell = start.state->particles.environment.cell;
            member.dynamics.emplace(*member.given, *start.state, start.options);
        } else {
            member.dynamics.emplace(*member.given, std::move(start.particles), start.options);
        }
        member.dynamics->watch(limits);
    });
}

size_t ManyDynamics::count_going_on() const {
    return static_cast<size_t>(
        std::count_if(members_.begin(), members_.end(), [](const Member& member) { return member.ended.empty(); }));
}

void ManyDynamics::compute_forces(std::span<const SystemView> systems, const std::vector<size_t>& of) {
    answers_.clear();
    for (const size_t i : of) answers_.push_back(&members_[i].given->answer);
    if (!of.empty()) forces_.compute(systems, answers_);
}

void ManyDynamics::for_each(const std::vector<size_t>& of, const std::function<void(size_t)>& work) {
    run_over(forces_.team(), of.size(), [&](size_t k) {
        const size_t i = of[k];
        try {
            work(i);
        } catch (const Error& error) {
            if (error.status() != Status::system) throw;
            members_[i].ended = error.what();
        }
    });
}

void ManyDynamics::step() {
    const auto find_going = [&] {
        going_.clear();
        for (size_t i = 0; i < members_.size(); ++i)
            if (goes_on(i)) going_.push_back(i);
    };
    find_going();
    for_each(going_, [&](size_t i) { members_[i].dynamics->begin_step(); });
    find_going();
    systems_.clear();
    for (const size_t i : going_) systems_.push_back(members_[i].dynamics->particles().view());
    compute_forces(systems_, going_);
    for_each(going_, [&](size_t i) { members_[i].dynamics->finish_step(); });
}

}  // namespace mlff
