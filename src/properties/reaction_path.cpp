// SPDX-License-Identifier: MIT
#include "properties/reaction_path.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace mlff {
namespace {

constexpr double kDeepValley = 0.01;     // eV
constexpr double kFlatCurvature = 0.01;  // eV/angstrom^2

}  // namespace

ImageForces session_image_forces(Session& session, const Particles& atoms) {
    return [&session, atoms](std::span<const Image> images) {
        std::vector<ImageResult> results(images.size());
        std::vector<SystemView> systems;
        std::vector<Results> wanted(images.size());
        for (size_t k = 0; k < images.size(); ++k) {
            systems.push_back(atoms.view());
            systems.back().positions = images[k].data();
            results[k].forces.resize(images[k].size());
            wanted[k].outputs.energy = &results[k].energy;
            wanted[k].outputs.forces = results[k].forces.data();
        }
        session.evaluate(systems, wanted);
        return results;
    };
}

ReactionPath::ReactionPath(const Band& band)
    : images(band.images()), tangents(band.tangents()), results(band.results()) {}

void ReactionPath::replace(size_t image, const Dimer& dimer) {
    const double sign = dot_product(tangents[image], dimer.direction()) < 0 ? -1 : 1;
    images[image] = dimer.image();
    results[image] = dimer.result();
    tangents[image] = dimer.direction();
    for (double& x : tangents[image]) x *= sign;
}

std::vector<double> ReactionPath::energies() const {
    std::vector<double> energies;
    for (const ImageResult& result : results) energies.push_back(result.energy);
    return energies;
}

std::vector<double> ReactionPath::slopes() const {
    std::vector<double> slopes;
    for (size_t k = 0; k < images.size(); ++k) slopes.push_back(-dot_product(results[k].forces, tangents[k]));
    return slopes;
}

PathSummary summarize(const ReactionPath& path, bool is_exact) {
    PathSummary summary;
    summary.distances = distances_along(path.images);
    summary.energies = path.energies();
    summary.slopes = path.slopes();
    summary.curve = energy_curve(summary.distances, summary.energies, summary.slopes);
    const std::vector<double>& energies = summary.energies;
    const auto top = static_cast<size_t>(std::max_element(energies.begin(), energies.end()) - energies.begin());
    if (top > 0 && top + 1 < energies.size()) summary.highest = top;
    summary.top_energy = energies[top];
    summary.top_distance = summary.distances[top];
    if (!(is_exact && summary.highest)) {
        const std::vector<double>& curve = summary.curve.energies;
        const auto point = static_cast<size_t>(std::max_element(curve.begin(), curve.end()) - curve.begin());
        summary.top_energy = curve[point];
        summary.top_distance = summary.curve.distances[point];
    }
    summary.barrier_forward = summary.top_energy - energies.front();
    summary.barrier_backward = summary.top_energy - energies.back();
    summary.reaction_energy = energies.back() - energies.front();
    for (size_t k = 1; k + 1 < energies.size(); ++k) {
        const auto here = energies.begin() + static_cast<std::ptrdiff_t>(k);
        if (!(*here < *(here - 1) && *here <= *(here + 1))) continue;
        const double ridge =
            std::min(*std::max_element(energies.begin(), here), *std::max_element(here, energies.end()));
        if (ridge - *here > kDeepValley) summary.minima.push_back(k);
    }
    return summary;
}

bool SaddleCheck::has_one_negative() const {
    return !curvatures.empty() && curvatures[0] < -kFlatCurvature &&
           (curvatures.size() < 2 || curvatures[1] > -kFlatCurvature);
}

SaddleCheck check_saddle(const ReactionPath& path, size_t image, const Particles& atoms, const ImageForces& forces) {
    RotationOptions options;
    options.mode_count = 2;
    const LowestModes modes =
        lowest_modes(path.images[image], path.tangents[image], atoms.is_fixed, rigid_motion_of(atoms), options, forces);
    SaddleCheck check;
    check.curvatures = modes.curvatures;
    check.direction = modes.directions.front();
    check.overlap = std::abs(dot_product(check.direction, path.tangents[image]));
    check.is_converged = modes.is_converged;
    return check;
}

}  // namespace mlff
