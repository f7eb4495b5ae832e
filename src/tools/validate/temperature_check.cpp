// SPDX-License-Identifier: MIT
#include "tools/validate/temperature_check.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>

#include "core/elements.h"
#include "core/error.h"
#include "dynamics/units.h"
#include "tools/validate/check_names.h"
#include "tools/validate/statistics.h"

namespace mlff::validate {
namespace {

std::span<const double> equilibrated(const std::vector<double>& values) {
    return std::span(values).subspan(static_cast<size_t>(kEquilibrationPart * static_cast<double>(values.size())));
}

// The number of steps per independent sample.
double inefficiency_of(std::span<const double> kinetic_energies, const Run& run) {
    return std::max(correlated_mean(kinetic_energies).inefficiency, 1 / (run.friction * run.time_step));
}

// The `--steps` that correspond to the length of this run in the bath.
double steps_of(const Run& run) { return static_cast<double>(run.kinetic_energy.size()) / kBathPart; }

// The deviation of the mean from the bath's temperature. The relative variance of a kinetic energy with n degrees of
// freedom is 2 / n.
Check mean_check(const std::string& name, const std::vector<double>& kinetic_energies, double degrees,
                 double bath_temperature, double limit_percent, const Run& run) {
    const auto counted = equilibrated(kinetic_energies);
    const double expected = 0.5 * degrees * kBoltzmann * bath_temperature,
                 samples = static_cast<double>(counted.size()) / inefficiency_of(counted, run);
    Check check{name,          100 * (correlated_mean(counted).mean / expected - 1),     "% off", -limit_percent,
                limit_percent, kStandardErrors * 100 * std::sqrt(2 / degrees / samples), ""};
    suggest_steps(check, steps_of(run), 0.5);
    return check;
}

Check shape_check(double degrees, double least_p_value, const Run& run) {
    const auto kinetic = equilibrated(run.kinetic_energy);
    const double stride = inefficiency_of(kinetic, run);
    const ShapeTest test = canonical_shape_test(kinetic, degrees, stride);
    Check check{kTemperatureShapeCheck,
                test.p_value,
                "(p-value, chi-square test)",
                least_p_value,
                1,
                0,
                concat(test.sample_count, " independent samples")};
    check.has_few_samples = test.sample_count < kShapeSamples;
    constexpr double kReserve = 1.5;  // a longer run may show that fewer samples are independent
    if (check.verdict() == Verdict::undecided)
        check.deciding_steps =
            round_steps(kReserve * static_cast<double>(kShapeSamples) * stride / (1 - kEquilibrationPart) / kBathPart);
    return check;
}

// Orders elements: failed before undecided before passed; then the one farthest outside, or the one that needs the
// longest run.
bool is_worse(const Check& one, const Check& other) {
    const auto rank = [](const Check& check) {
        return check.verdict() == Verdict::failed ? 2 : check.verdict() == Verdict::undecided ? 1 : 0;
    };
    if (rank(one) != rank(other)) return rank(one) > rank(other);
    if (one.deciding_steps != other.deciding_steps) return one.deciding_steps > other.deciding_steps;
    return std::isnan(one.value) || std::abs(one.value) - one.uncertainty > std::abs(other.value) - other.uncertainty;
}

}  // namespace

std::vector<Check> check_temperature(const Run& run, double bath_temperature, const Thresholds& thresholds) {
    const double degrees = 3.0 * static_cast<double>(run.last.atom_count());
    std::vector<Check> checks = {mean_check(kTemperatureCheck, run.kinetic_energy, degrees, bath_temperature,
                                            thresholds.temperature_percent, run),
                                 shape_check(degrees, thresholds.temperature_p_value, run)};
    std::optional<Check> worst;
    for (size_t i = 0; i < run.elements.size(); ++i) {
        const auto atoms = std::count(run.last.atomic_numbers.begin(), run.last.atomic_numbers.end(), run.elements[i]);
        Check one = mean_check(kEquipartitionCheck, run.element_kinetic_energy[i], 3.0 * static_cast<double>(atoms),
                               bath_temperature, thresholds.equipartition_percent, run);
        one.note = element_symbol(run.elements[i]);
        if (!worst || is_worse(one, *worst)) worst = std::move(one);
    }
    checks.push_back(std::move(*worst));
    return checks;
}

}  // namespace mlff::validate
