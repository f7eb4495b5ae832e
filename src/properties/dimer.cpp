// SPDX-License-Identifier: MIT
#include "properties/dimer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.h"
#include "dynamics/counter_random.h"
#include "properties/eigenvalues.h"

namespace mlff {
namespace {

constexpr double kLongestDimerMove = 0.1;  // angstrom
constexpr double kSoftCurvature = 0.5;     // eV/angstrom^2: tolerances of smaller curvatures are relative to this

// Directions that are known, with the second derivatives of the energy along them.
class KnownDirections {
public:
    KnownDirections(const Image& image, const std::vector<uint8_t>& is_fixed, RigidMotion motion, double separation,
                    const ImageForces& forces)
        : image_(image),
          is_fixed_(is_fixed),
          rigid_(rigid_directions(image, motion)),
          separation_(separation),
          forces_(forces) {}

    size_t count() const { return directions_.size(); }

    // Adds what is new in `candidates`, all dimers in one batch. False if nothing is.
    bool add(std::vector<Image> candidates) {
        const size_t before = directions_.size();
        for (Image& candidate : candidates) {
            const double length = length_of(candidate);
            for (int pass = 0; pass < 2; ++pass) {  // the second time removes what rounding left
                restrict_to_free(candidate);
                project_out(directions_, candidate);
            }
            const double rest = length_of(candidate);
            if (!(rest > 1e-4 * length) || !(rest > 0)) continue;
            for (double& x : candidate) x /= rest;
            directions_.push_back(std::move(candidate));
        }
        if (directions_.size() == before) return false;
        evaluate(before);
        return true;
    }

    // The best combinations of the known directions, and what the curvature has across each.
    void solve(size_t mode_count, LowestModes& modes, std::vector<Image>& residuals) const {
        const size_t size = directions_.size();
        std::vector<double> matrix(size * size);
        for (size_t a = 0; a < size; ++a)
            for (size_t b = 0; b < size; ++b)
                matrix[a * size + b] =
                    0.5 * (dot_product(directions_[a], products_[b]) + dot_product(directions_[b], products_[a]));
        const Eigenvectors<double> solved = eigenvectors_of_symmetric(matrix, size);
        modes.curvatures.clear();
        modes.directions.clear();
        residuals.clear();
        for (size_t mode = 0; mode < std::min(mode_count, size); ++mode) {
            Image direction(image_.size()), residual(image_.size());
            for (size_t k = 0; k < size; ++k)
                for (size_t i = 0; i < image_.size(); ++i) {
                    direction[i] += solved.vectors[mode * size + k] * directions_[k][i];
                    residual[i] += solved.vectors[mode * size + k] * products_[k][i];
                }
            for (size_t i = 0; i < image_.size(); ++i) residual[i] -= solved.values[mode] * direction[i];
            modes.curvatures.push_back(solved.values[mode]);
            modes.directions.push_back(std::move(direction));
            residuals.push_back(std::move(residual));
        }
    }

private:
    void restrict_to_free(Image& vector) const {
        for (size_t i = 0; i < vector.size(); ++i)
            if (!is_fixed_.empty() && is_fixed_[i / 3]) vector[i] = 0;
        project_out(rigid_, vector);
    }

    void evaluate(size_t first) {
        std::vector<Image> ends;
        for (size_t k = first; k < directions_.size(); ++k)
            for (const double sign : {1.0, -1.0}) {
                Image end = image_;
                for (size_t i = 0; i < end.size(); ++i) end[i] += sign * separation_ * directions_[k][i];
                ends.push_back(std::move(end));
            }
        const std::vector<ImageResult> results = forces_(ends);
        for (size_t k = 0; k + 1 < results.size(); k += 2) {
            Image product(image_.size());
            for (size_t i = 0; i < product.size(); ++i)
                product[i] = (results[k + 1].forces[i] - results[k].forces[i]) / (2 * separation_);
            restrict_to_free(product);
            products_.push_back(std::move(product));
        }
    }

    const Image& image_;
    const std::vector<uint8_t>& is_fixed_;
    std::vector<Image> rigid_;
    double separation_;
    const ImageForces& forces_;
    std::vector<Image> directions_, products_;
};

}  // namespace

LowestModes lowest_modes(const Image& image, const Image& start, const std::vector<uint8_t>& is_fixed,
                         RigidMotion motion, const RotationOptions& options, const ImageForces& forces) {
    KnownDirections known(image, is_fixed, motion, options.separation, forces);
    std::vector<Image> candidates = {start};
    // Directions of no symmetry: a mode that `start` has no part of by symmetry is found only from elsewhere.
    while (candidates.size() < options.mode_count) {
        Image random(image.size());
        for (size_t i = 0; i < random.size(); ++i) random[i] = random_normals(candidates.size(), 0, i / 3)[i % 3];
        candidates.push_back(std::move(random));
    }
    LowestModes modes;
    std::vector<Image> residuals;
    for (int64_t rotation = 0;; ++rotation) {
        if (!known.add(std::move(candidates))) {
            if (known.count() == 0) fail(Status::system, "no atom is free to move: there is no curvature");
            modes.is_converged = true;  // all directions are known
            break;
        }
        known.solve(options.mode_count, modes, residuals);
        candidates.clear();
        for (size_t mode = 0; mode < residuals.size(); ++mode)
            if (!(length_of(residuals[mode]) <=
                  options.tolerance * std::max(std::abs(modes.curvatures[mode]), kSoftCurvature)))
                candidates.push_back(residuals[mode]);
        modes.is_converged = candidates.empty();
        if (modes.is_converged || rotation >= options.rotation_limit) break;
    }
    return modes;
}

Dimer::Dimer(Image image, Image direction, std::vector<uint8_t> is_fixed, RigidMotion motion,
             const DimerOptions& options)
    : image_(std::move(image)),
      direction_(std::move(direction)),
      is_fixed_(std::move(is_fixed)),
      motion_(motion),
      options_(options) {
    if (!(options.largest_force > 0))
        fail(Status::argument, "the force limit is ", options.largest_force, " eV/A, expected more than 0");
}

void Dimer::evaluate(const ImageForces& forces) {
    result_ = forces({&image_, 1}).front();
    RotationOptions rotation;
    rotation.rotation_limit = move_count_ == 0 ? 20 : 3;
    rotation.tolerance = 0.1;
    const LowestModes modes = lowest_modes(image_, direction_, is_fixed_, motion_, rotation, forces);
    if ((modes.curvatures.front() < 0) != (curvature_ < 0)) minimizer_.forget();  // other forces from now on
    curvature_ = modes.curvatures.front();
    direction_ = modes.directions.front();
    Image free = result_.forces;
    for (size_t i = 0; i < free.size(); ++i)
        if (!is_fixed_.empty() && is_fixed_[i / 3]) free[i] = 0;
    largest_force_ = largest_move(free);
    is_converged_ = largest_force_ <= options_.largest_force && curvature_ < 0;
}

// Up along the lowest curvature and down across it. Where no curvature is negative, only up.
void Dimer::move() {
    const double along = dot_product(result_.forces, direction_);
    Image gradient(image_.size());
    for (size_t i = 0; i < gradient.size(); ++i)
        if (is_fixed_.empty() || !is_fixed_[i / 3])
            gradient[i] = (curvature_ < 0 ? 2 * along * direction_[i] - result_.forces[i] : along * direction_[i]);
    minimizer_.step(image_, gradient, kLongestDimerMove);
    ++move_count_;
}

}  // namespace mlff
