// SPDX-License-Identifier: MIT
// A reaction path and what it says: barriers, the saddle and whether it is one.
#pragma once

#include <optional>
#include <vector>

#include "engine/session.h"
#include "properties/band.h"
#include "properties/dimer.h"

namespace mlff {

// Of `atoms` at other positions, all images as one batch. The session must outlive it. Throws Error{system} for results
// that are not finite.
ImageForces session_image_forces(Session& session, const Particles& atoms);

struct ReactionPath {
    std::vector<Image> images, tangents;
    std::vector<ImageResult> results;

    ReactionPath() = default;
    explicit ReactionPath(const Band& band);
    // A refined saddle in the place of an image.
    void replace(size_t image, const Dimer& dimer);

    std::vector<double> energies() const;
    std::vector<double> slopes() const;  // eV/angstrom
};

// Energies in eV. The barriers are those of the highest image, if `is_exact` says that it has climbed or was refined;
// else of the highest point of the curve through all images.
struct PathSummary {
    std::vector<double> distances, energies, slopes;
    PathCurve curve;
    std::optional<size_t> highest;  // none if an end is
    double top_energy = 0, top_distance = 0;
    double barrier_forward = 0, barrier_backward = 0, reaction_energy = 0;
    std::vector<size_t> minima;  // images between the ends that lie in valleys deeper than 0.01 eV
};
PathSummary summarize(const ReactionPath& path, bool is_exact);

struct SaddleCheck {
    std::vector<double> curvatures;  // eV/angstrom^2, the two lowest, or one where there are no more
    Image direction;                 // of the lowest, of length 1
    double overlap = 0;              // of that direction with the path, from 0 to 1
    bool is_converged = false;
    // One curvature below -0.01 eV/angstrom^2, and no more.
    bool has_one_negative() const;
};
SaddleCheck check_saddle(const ReactionPath& path, size_t image, const Particles& atoms, const ImageForces& forces);

}  // namespace mlff
