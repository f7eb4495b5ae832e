// SPDX-License-Identifier: MIT
#include "tools/validate/energy_check.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "core/error.h"
#include "dynamics/units.h"
#include "tools/validate/check_names.h"

namespace mlff::validate {

EnergyDrift energy_drift(const Run& run, double temperature) {
    constexpr double kFemtosecondsPerNanosecond = 1e6, kMilli = 1e3;
    EnergyDrift drift;
    drift.line = fit_line(run.total_energy, run.time_step);
    const auto atoms = static_cast<double>(run.last.atom_count()), steps = static_cast<double>(run.total_energy.size());
    const double unit = kMilli * kFemtosecondsPerNanosecond / atoms;
    drift.meV_per_atom_per_ns = unit * drift.line.slope;
    drift.meV_per_atom_per_ns_error = unit * drift.line.slope_error;
    drift.percent_of_kinetic_energy =
        100 * drift.line.slope * run.time_step * steps / (1.5 * kBoltzmann * temperature * atoms);
    drift.fluctuation_meV_per_atom = kMilli * drift.line.residual_deviation / atoms;
    return drift;
}

double time_step_order(const Run& coarse, const Run& fine) {
    const double time = std::min(coarse.time_step * static_cast<double>(coarse.total_energy.size()),
                                 fine.time_step * static_cast<double>(fine.total_energy.size()));
    const auto fluctuation = [time](const Run& run) {
        const auto count = std::min(run.total_energy.size(), static_cast<size_t>(std::llround(time / run.time_step)));
        return fit_line(std::span(run.total_energy).first(count), run.time_step).residual_deviation;
    };
    return std::log(fluctuation(coarse) / fluctuation(fine)) / std::log(coarse.time_step / fine.time_step);
}

std::vector<Check> check_energy(const Run& run, const Run& fine, bool is_periodic, double temperature,
                                const Thresholds& thresholds) {
    const EnergyDrift drift = energy_drift(run, temperature);
    std::vector<Check> checks;
    const double per_time = thresholds.drift_meV_per_atom_per_ns, part = thresholds.drift_percent_of_kinetic_energy;
    checks.push_back({kDriftCheck, drift.meV_per_atom_per_ns, "meV/atom/ns", -per_time, per_time,
                      kStandardErrors * drift.meV_per_atom_per_ns_error, ""});
    suggest_steps(checks.back(), static_cast<double>(run.total_energy.size()),
                  1.5);  // for a slope: more samples, farther apart
    checks.push_back({kDriftOverRunCheck, drift.percent_of_kinetic_energy, "% of kinetic energy", -part, part, 0, ""});
    checks.push_back({kOrderCheck, time_step_order(run, fine), "", 2 - thresholds.time_step_order_tolerance,
                      2 + thresholds.time_step_order_tolerance, 0,
                      concat("fluctuation ", drift.fluctuation_meV_per_atom, " meV/atom")});
    checks.push_back(at_most(kMomentumCheck, run.momentum_change, thresholds.momentum, "of the sum of sizes"));
    if (!is_periodic)
        checks.push_back(at_most(kAngularMomentumCheck, run.angular_momentum_change, thresholds.angular_momentum,
                                 "of the sum of sizes"));
    return checks;
}

}  // namespace mlff::validate
