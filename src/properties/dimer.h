// SPDX-License-Identifier: MIT
// Curvatures from forces, and walks to saddles along the lowest of them.
//
// A dimer is two images on either side of a point (Henkelman and Jonsson 1999): the difference of their forces is the
// curvature of the energy along it and, across it, where to rotate it. Each rotation adds a direction to those that are
// known, and the best combination of all is taken, as in Lanczos' method (Olsen and others 2004).
#pragma once

#include <cstdint>
#include <vector>

#include "properties/cautious_minimizer.h"
#include "properties/path.h"

namespace mlff {

struct LowestModes {
    std::vector<double> curvatures;  // eV/angstrom^2, ascending
    std::vector<Image> directions;   // of length 1
    bool is_converged = false;
};

struct RotationOptions {
    size_t mode_count = 1;
    int64_t rotation_limit = 40;
    double tolerance = 0.02;   // of the part of a curvature that is across its direction, relative to the curvature
    double separation = 0.01;  // angstrom, from the point to an end of the dimer
};

// The lowest curvatures at `image`, without rigid motions and fixed atoms. `start` is the first direction.
LowestModes lowest_modes(const Image& image, const Image& start, const std::vector<uint8_t>& is_fixed,
                         RigidMotion motion, const RotationOptions& options, const ImageForces& forces);

struct DimerOptions {
    double largest_force = 0.01;  // eV/angstrom; converged when no force is larger and the curvature is negative
    int64_t step_limit = 200;     // moves
};

class Dimer {
public:
    Dimer(Image image, Image direction, std::vector<uint8_t> is_fixed, RigidMotion motion, const DimerOptions& options);

    // Evaluates and rotates. Before the first move, and after each.
    void evaluate(const ImageForces& forces);
    void move();

    const Image& image() const { return image_; }
    const Image& direction() const { return direction_; }
    const ImageResult& result() const { return result_; }
    double curvature() const { return curvature_; }
    double largest_force() const { return largest_force_; }  // on atoms that move
    int64_t move_count() const { return move_count_; }
    bool is_converged() const { return is_converged_; }
    bool is_finished() const { return is_converged_ || move_count_ >= options_.step_limit; }

private:
    Image image_, direction_;
    std::vector<uint8_t> is_fixed_;
    RigidMotion motion_;
    DimerOptions options_;
    ImageResult result_;
    CautiousMinimizer minimizer_;
    double curvature_ = 0, largest_force_ = 0;
    int64_t move_count_ = 0;
    bool is_converged_ = false;
};

}  // namespace mlff
