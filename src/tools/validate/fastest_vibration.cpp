// SPDX-License-Identifier: MIT
#include "tools/validate/fastest_vibration.h"

#include <cmath>
#include <map>
#include <numbers>

#include "dynamics/units.h"

namespace mlff::validate {

FastestVibration fastest_vibration(const Run& run, double temperature) {
    struct Sum {
        double squares = 0;  // 1/fs^2
        size_t count = 0;
    };
    std::map<int32_t, Sum> sums;
    for (const Snapshot& snapshot : run.snapshots)
        for (size_t atom = 0; atom < run.last.atom_count(); ++atom) {
            const double* force = &snapshot.forces[3 * atom];
            Sum& sum = sums[run.last.atomic_numbers[atom]];
            sum.squares += (force[0] * force[0] + force[1] * force[1] + force[2] * force[2]) * kAccelerationUnit /
                           (run.last.masses[atom] * kBoltzmann * temperature);
            ++sum.count;
        }
    FastestVibration fastest{INFINITY, 0};
    for (const auto& [atomic_number, sum] : sums) {
        const double period = 2 * std::numbers::pi / std::sqrt(sum.squares / static_cast<double>(sum.count));
        if (!(period >= fastest.period)) fastest = {period, atomic_number};  // NaN too
    }
    return fastest;
}

}  // namespace mlff::validate
