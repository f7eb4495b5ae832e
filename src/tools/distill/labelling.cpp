// SPDX-License-Identifier: MIT
#include "tools/distill/labelling.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace mlff {

std::string label_frame(Session& teacher, Frame& frame, double largest_force) {
    const SystemView system = frame.view();
    double energy = 0;
    std::vector<double> forces(frame.positions.size()), stress(6);
    Results results;
    results.outputs.energy = &energy;
    results.outputs.forces = forces.data();
    const bool has_stress = system.is_periodic() && teacher.model().gives_virial(system);
    if (has_stress) results.stress = stress.data();
    try {
        teacher.evaluate_unchecked({&system, 1}, {&results, 1});
    } catch (const Error& error) {
        return error.what();
    }
    double largest = 0;
    bool is_finite = std::isfinite(energy);
    for (size_t i = 0; i < forces.size(); i += 3) {
        const double size = std::hypot(forces[i], forces[i + 1], forces[i + 2]);
        is_finite &= std::isfinite(size);
        largest = std::max(largest, size);
    }
    if (!is_finite) return "the teacher's energy or forces are not finite";
    if (largest > largest_force) return "a force above the largest that is wanted";
    frame.set_info("energy", energy);
    if (has_stress) frame.set_info("stress", stress);
    frame.set_column("forces", 3, std::move(forces));
    return "";
}

}  // namespace mlff
