// SPDX-License-Identifier: MIT
#include "frame_result.h"

#include "trust/meter.h"

namespace mlff::app {

FrameResult evaluate_frame(Session& session, const Frame& frame, const FrameWishes& wishes) {
    const bool wants_descriptors = wishes.descriptors;
    const SystemView system = frame.view();
    FrameResult result;
    if (wants_descriptors)
        result.descriptors.resize(static_cast<size_t>(system.atom_count * session.model().summary().descriptor_count));
    result.forces.resize(static_cast<size_t>(3 * system.atom_count));
    result.atom_count = static_cast<size_t>(system.atom_count);
    if (session.model().gives_atom_energies()) result.atom_energies.resize(result.atom_count);
    result.has_stress = system.is_periodic() && session.model().gives_virial(system);
    Results results;
    results.outputs.energy = &result.energy;
    results.outputs.forces = result.forces.data();
    results.outputs.atom_energies = session.model().gives_atom_energies() ? result.atom_energies.data() : nullptr;
    results.outputs.descriptors = wants_descriptors ? result.descriptors.data() : nullptr;
    results.stress = result.has_stress ? result.stress.data() : nullptr;
    result.has_spread = session.model().summary().member_count > 0;
    if (result.has_spread) {
        result.sigma_forces.resize(result.atom_count);
        results.outputs.sigma_energy_per_atom = &result.sigma_energy_per_atom;
        results.outputs.sigma_forces = result.sigma_forces.data();
        results.sigma_max_force = &result.sigma_max_force;
    }
    if (const TrustMeter* meter = session.trust_meter()) {
        result.alarm_error = meter->alarm_error;
        result.expected_errors.resize(result.atom_count);
        result.novelties.resize(result.atom_count);
        results.outputs.expected_errors = result.expected_errors.data();
        results.outputs.novelties = result.novelties.data();
    }
    if (wishes.even_if_not_finite)
        session.evaluate_unchecked({&system, 1}, {&results, 1});
    else
        session.evaluate({&system, 1}, {&results, 1});
    return result;
}

}  // namespace mlff::app
