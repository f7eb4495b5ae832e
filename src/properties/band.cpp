// SPDX-License-Identifier: MIT
#include "properties/band.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "core/error.h"

namespace mlff {
namespace {

// By the energies of an image and its neighbours; a mixture at extrema, so that it never jumps.
Image improved_tangent(const Image& forward, const Image& backward, double energy_before, double energy,
                       double energy_after) {
    if (energy_after > energy && energy > energy_before) return forward;
    if (energy_after < energy && energy < energy_before) return backward;
    const double rise = std::abs(energy_after - energy), fall = std::abs(energy_before - energy);
    double most = std::max(rise, fall), least = std::min(rise, fall);
    if (!(most > 0)) most = least = 1;
    const bool is_uphill = energy_after > energy_before;
    Image tangent(forward.size());
    for (size_t i = 0; i < tangent.size(); ++i)
        tangent[i] = (is_uphill ? most : least) * forward[i] + (is_uphill ? least : most) * backward[i];
    return tangent;
}

void make_unit(Image& vector) {
    const double length = length_of(vector);
    if (!(length > 0)) return;
    for (double& x : vector) x /= length;
}

}  // namespace

Band::Band(std::vector<Image> images, std::vector<uint8_t> is_fixed, RigidMotion motion, const BandOptions& options)
    : images_(std::move(images)),
      tangents_(images_.size()),
      is_fixed_(std::move(is_fixed)),
      motion_(motion),
      options_(options),
      results_(images_.size()) {
    if (images_.size() < 3)
        fail(Status::argument, "the path has ", images_.size(), " images, expected at least 3 with both ends");
    if (!(options.largest_force > 0))
        fail(Status::argument, "the force limit is ", options.largest_force, " eV/A, expected more than 0");
    if (!(options.spring > 0) || !std::isfinite(options.spring))
        fail(Status::argument, "the spring constant is ", options.spring, " eV/A^2, expected more than 0");
    if (options.step_limit < 0)
        fail(Status::argument, "the step limit is ", options.step_limit, ", expected 0 or more");
}

std::vector<double> Band::energies() const {
    std::vector<double> energies;
    for (const ImageResult& result : results_) energies.push_back(result.energy);
    return energies;
}

std::vector<double> Band::slopes() const {
    std::vector<double> slopes;
    for (size_t k = 0; k < images_.size(); ++k) slopes.push_back(-dot_product(results_[k].forces, tangents_[k]));
    return slopes;
}

std::optional<size_t> Band::highest() const {
    size_t highest = 0;
    for (size_t k = 1; k < results_.size(); ++k)
        if (results_[k].energy > results_[highest].energy) highest = k;
    if (highest == 0 || highest + 1 == results_.size()) return {};
    return highest;
}

void Band::evaluate(const ImageForces& forces) {
    const size_t edge = results_.front().forces.empty() ? 0 : 1;  // the ends are evaluated once
    const std::span<const Image> images(images_.data() + edge, images_.size() - 2 * edge);
    std::vector<ImageResult> results = forces(images);
    std::move(results.begin(), results.end(), results_.begin() + static_cast<std::ptrdiff_t>(edge));
    set_tangents();
    const std::optional<size_t> climbing_before = climbing_;
    climbing_ = may_climb_ ? highest() : std::nullopt;
    set_gradient();
    if (options_.climbs && !may_climb_ && largest_force_ <= std::max(options_.climbs_below, options_.largest_force)) {
        may_climb_ = true;
        climbing_ = highest();
        set_gradient();
    }
    if (climbing_ != climbing_before) minimizer_.forget();
    is_converged_ = largest_force_ <= options_.largest_force;
}

void Band::set_tangents() {
    for (size_t k = 0; k < images_.size(); ++k) {
        const bool is_first = k == 0, is_last = k + 1 == images_.size();
        const Image forward = is_last ? Image() : difference_of(images_[k + 1], images_[k]);
        const Image backward = is_first ? Image() : difference_of(images_[k], images_[k - 1]);
        tangents_[k] = is_first  ? forward
                       : is_last ? backward
                                 : improved_tangent(forward, backward, results_[k - 1].energy, results_[k].energy,
                                                    results_[k + 1].energy);
        project_out(rigid_directions(images_[k], motion_), tangents_[k]);
        make_unit(tangents_[k]);
    }
}

void Band::set_gradient() {
    const size_t size = images_.front().size();
    gradient_.assign((images_.size() - 2) * size, 0);
    for (size_t k = 1; k + 1 < images_.size(); ++k) {
        const Image& tangent = tangents_[k];
        const std::vector<double>& forces = results_[k].forces;
        double along = -dot_product(forces, tangent);
        if (climbing_ == k)
            along *= 2;
        else if (options_.method == BandOptions::Method::elastic_band)
            along += options_.spring * (length_of(difference_of(images_[k + 1], images_[k])) -
                                        length_of(difference_of(images_[k], images_[k - 1])));
        double* const gradient = gradient_.data() + (k - 1) * size;
        for (size_t i = 0; i < size; ++i)
            if (is_fixed_.empty() || !is_fixed_[i / 3]) gradient[i] = -(forces[i] + along * tangent[i]);
    }
    largest_force_ = largest_move(gradient_);
}

void Band::move() {
    variables_.clear();
    for (size_t k = 1; k + 1 < images_.size(); ++k)
        variables_.insert(variables_.end(), images_[k].begin(), images_[k].end());
    const double spacing = distances_along(images_).back() / static_cast<double>(images_.size() - 1);
    minimizer_.step(variables_, gradient_, 0.5 * spacing);  // so that images do not pass each other
    const size_t size = images_.front().size();
    for (size_t i = 0; i < variables_.size(); ++i) images_[1 + i / size][i % size] = variables_[i];
    if (options_.method == BandOptions::Method::string) spread();
    ++move_count_;
}

void Band::spread() {
    const std::span<const Image> all(images_);
    const size_t middle = climbing_.value_or(0);
    std::vector<Image> first = spread_images(all.first(middle + 1), middle + 1);
    const std::vector<Image> second = spread_images(all.subspan(middle), images_.size() - middle);
    first.pop_back();
    first.insert(first.end(), second.begin(), second.end());
    images_ = std::move(first);
}

}  // namespace mlff
