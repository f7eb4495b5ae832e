// SPDX-License-Identifier: MIT
#include "tools/validate/findings.h"

#include "core/elements.h"
#include "core/error.h"
#include "dynamics/units.h"
#include "tools/validate/structure_check.h"
#include "tools/validate/temperature_check.h"

namespace mlff::validate {
namespace {

constexpr size_t kPlotPoints = 400;
constexpr double kPicoseconds = 1e-3;  // per fs

// Values at start + spacing, start + 2 spacing, ...
Curve thinned(const std::vector<double>& values, double start, double spacing, const std::string& label) {
    Curve curve{label, {}, {}};
    const size_t stride = (values.size() + kPlotPoints - 1) / kPlotPoints;
    for (size_t i = 0; i < values.size(); i += stride) {
        curve.x.push_back(start + spacing * static_cast<double>(i + 1));
        curve.y.push_back(values[i]);
    }
    return curve;
}

Curve energy_curve(const Run& run) {
    constexpr double kMilli = 1e3;
    std::vector<double> change;
    for (double energy : run.total_energy)
        change.push_back(kMilli * (energy - run.total_energy.front()) / static_cast<double>(run.last.atom_count()));
    return change.empty() ? Curve{} : thinned(change, 0, kPicoseconds * run.time_step, "total energy");
}

// One run after the other.
std::vector<Curve> temperature_curves(const ModelRuns& runs, const Particles& start) {
    std::vector<Curve> curves;
    const int rigid_degrees = start.environment.is_periodic() || start.atom_count() < 3 ? 3 : 6;
    double time = 0;
    for (const Run* run : {&runs.bath, &runs.free}) {
        const double degrees = 3 * static_cast<double>(start.atom_count()) - (run->friction > 0 ? 0 : rigid_degrees);
        std::vector<double> temperatures;
        for (double kinetic : run->kinetic_energy) temperatures.push_back(2 * kinetic / (degrees * kBoltzmann));
        if (!temperatures.empty())
            curves.push_back(thinned(temperatures, time, kPicoseconds * run->time_step, run->phase));
        time += kPicoseconds * run->time_step * static_cast<double>(temperatures.size());
    }
    return curves;
}

std::vector<Curve> distance_curves(const Distances& distances, const Particles& start) {
    std::vector<Curve> curves;
    for (const PairHistogram& histogram : distances.histograms) {
        Curve curve{pair_label(histogram.elements), {}, radial_distribution(histogram, distances, start)};
        for (size_t bin = 0; bin < curve.y.size(); ++bin)
            curve.x.push_back(kHistogramBin * (static_cast<double>(bin) + 0.5));
        curves.push_back(std::move(curve));
    }
    return curves;
}

}  // namespace

Findings findings_of(const ModelRuns& runs, const Particles& start, double temperature, const Thresholds& thresholds) {
    Findings findings;
    const auto append = [&](const std::vector<Check>& checks) {
        findings.checks.insert(findings.checks.end(), checks.begin(), checks.end());
    };
    findings.blow_up = runs.blow_up;
    findings.energy = energy_curve(runs.free);
    findings.temperatures = temperature_curves(runs, start);
    if (runs.has_free()) {
        findings.drift = energy_drift(runs.free, temperature);
        append(check_energy(runs.free, runs.fine, start.environment.is_periodic(), temperature, thresholds));
    }
    if (runs.has_bath()) {
        findings.fastest = fastest_vibration(runs.bath, temperature);
        append(check_temperature(runs.bath, temperature, thresholds));
    }
    std::vector<Snapshot> snapshots = runs.bath.snapshots;
    snapshots.insert(snapshots.end(), runs.free.snapshots.begin(), runs.free.snapshots.end());
    const Distances in_bath = measure_distances(start, runs.bath.snapshots),
                    free = measure_distances(start, runs.free.snapshots);
    append(check_structure(start, snapshots, in_bath, free, thresholds));
    findings.bath_distances = distance_curves(in_bath, start);
    findings.distances = free.snapshot_count > 0 ? distance_curves(free, start) : findings.bath_distances;
    return findings;
}

}  // namespace mlff::validate
