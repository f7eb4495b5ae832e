// SPDX-License-Identifier: MIT
#include "validate/temperature_check.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "core/elements.h"
#include "core/error.h"
#include "dynamics/units.h"
#include "validate/statistics.h"

namespace mlff::validate {
namespace {

std::span<const double> equilibrated(const std::vector<double>& values) {
    return std::span(values).subspan(static_cast<size_t>(kEquilibrationPart * static_cast<double>(values.size())));
}

struct Deviation {
    double percent = 0, error = 0;  // of the bath's temperature
};

// How many steps count as one sample.
double inefficiency_of(std::span<const double> kinetic_energies, const Run& run) {
    return std::max(correlated_mean(kinetic_energies).inefficiency, 1 / (run.friction * run.time_step));
}

// A kinetic energy of n degrees of freedom has the relative variance 2 / n.
Deviation deviation(std::span<const double> kinetic_energies, double degrees, double bath_temperature, const Run& run) {
    const double expected = 0.5 * degrees * kBoltzmann * bath_temperature, samples = static_cast<double>(kinetic_energies.size()) / inefficiency_of(kinetic_energies, run);
    return {100 * (correlated_mean(kinetic_energies).mean / expected - 1), 100 * std::sqrt(2 / degrees / samples)};
}

}  // namespace

std::vector<Check> check_temperature(const Run& run, double bath_temperature, const Thresholds& thresholds) {
    const auto kinetic = equilibrated(run.kinetic_energy);
    const double degrees = 3.0 * static_cast<double>(run.last.atom_count());
    const Deviation all = deviation(kinetic, degrees, bath_temperature, run);
    std::vector<Check> checks;
    const double limit = thresholds.temperature_percent;
    checks.push_back({"mean temperature in a bath", all.percent, "% off", -limit, limit, 3 * all.error, ""});
    const double p_value = canonical_shape_p_value(kinetic, degrees, inefficiency_of(kinetic, run));
    checks.push_back({"distribution of the temperature", p_value, "(p-value, chi-square test)", thresholds.temperature_p_value, 1, 0, ""});

    Deviation worst;
    std::string worst_element;
    double worst_excess = -INFINITY;
    for (size_t i = 0; i < run.elements.size(); ++i) {
        const auto atoms = std::count(run.last.atomic_numbers.begin(), run.last.atomic_numbers.end(), run.elements[i]);
        const Deviation one = deviation(equilibrated(run.element_kinetic_energy[i]), 3.0 * static_cast<double>(atoms), bath_temperature, run);
        const double excess = std::abs(one.percent) - 3 * one.error;
        if (excess > worst_excess || std::isnan(excess)) worst = one, worst_element = element_symbol(run.elements[i]), worst_excess = excess;
        if (std::isnan(excess)) break;
    }
    const double share = thresholds.equipartition_percent;
    checks.push_back({"equipartition, worst element", worst.percent, "% off", -share, share, 3 * worst.error, worst_element});
    return checks;
}

}  // namespace mlff::validate
