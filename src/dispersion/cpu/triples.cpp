// SPDX-License-Identifier: MIT
#include "dispersion/cpu/triples.h"

#include <algorithm>
#include <cmath>

#include "dispersion/tables/units.h"

namespace mlff::dispersion::cpu {
namespace {

constexpr double kFadeBegin = kTripleCutoff - kFadeWidth;

}  // namespace

void TripleNeighbors::begin(int32_t slot) {
    slot_ = slot;
    runs_.clear();
    for (auto* numbers : {&to_[0], &to_[1], &to_[2], &square_, &inverse_, &cube_, &closeness_, &root_, &log_slope_,
                          &fade_, &fade_pull_, &weights_})
        numbers->clear();
}

void TripleNeighbors::add(const kernels::DispersionNeighbors<double>& found, int32_t slot, const SortedWeights& weights,
                          const double* shares, const double* share_slopes) {
    Run run{slot, count(), 0};
    for (int n = 0; n < found.run_count; ++n)
        for (int32_t atom = found.runs[2 * n]; atom < found.runs[2 * n + 1]; ++atom) {
            const std::array<double, 3> to = {found.x[atom] - found.center[0], found.y[atom] - found.center[1],
                                              found.z[atom] - found.center[2]};
            const double square = to[0] * to[0] + to[1] * to[1] + to[2] * to[2];
            if (!(square > found.least_square && square < found.cutoff_square)) continue;
            double c6 = 0, c6_slope = 0;
            for (size_t q = 0; q < kMaxReferences; ++q) {
                const double weight =
                    q < weights.count ? weights.first[static_cast<int64_t>(q) * weights.stride + atom] : 0;
                weights_.push_back(weight);
                c6 += shares[q] * weight;
                c6_slope += share_slopes[q] * weight;
            }
            add_neighbor(to, square, c6, c6_slope, slot);
        }
    run.end = count();
    if (run.begin < run.end) runs_.push_back(run);
}

void TripleNeighbors::add_neighbor(const std::array<double, 3>& to, double square, double c6, double c6_slope,
                                   int32_t slot) {
    const double r = std::sqrt(square), inverse = 1 / square;
    for (size_t k = 0; k < 3; ++k) to_[k].push_back(to[k]);
    square_.push_back(square);
    inverse_.push_back(inverse);
    cube_.push_back(inverse / r);
    closeness_.push_back(std::pow(tables_->pair_radius[tables_->pair(slot_, slot)] / r, tables_->triple_exponent()));
    root_.push_back(std::sqrt(std::abs(c6)));
    log_slope_.push_back(c6_slope / c6);
    const Fade<double> fade = tables_->method.is_smooth ? fade_out(r, kFadeBegin, kTripleCutoff) : Fade<double>{};
    fade_.push_back(fade.value);
    fade_pull_.push_back(fade.slope / r);
}

void TripleNeighbors::sum(kernels::DispersionSums<double>& sums) {
    pull_.assign(count(), 0);
    between_.resize(count());
    ratio_.resize(count());
    for (const Run& first_run : runs_)
        for (size_t first = first_run.begin; first < first_run.end; ++first)
            for (const Run& run : runs_)
                if (run.end > first + 1) add_triples(first, first_run.slot, run, sums);
    constexpr size_t kRow[6] = {0, 1, 2, 1, 0, 0}, kColumn[6] = {0, 1, 2, 2, 2, 1};
    for (size_t n = 0; n < count(); ++n) {
        for (size_t k = 0; k < 3; ++k) sums.force[k] += pull_[n] * to_[k][n];
        for (size_t k = 0; k < 6; ++k) sums.virial[k] += pull_[n] * to_[kRow[k]][n] * to_[kColumn[k]][n];
    }
}

// Squares of distances, and cube roots of radius^2 / r^2.
void TripleNeighbors::find_distances(size_t first, size_t begin, size_t end, double radius_square) {
    const double x = to_[0][first], y = to_[1][first], z = to_[2][first];
    const double *xs = to_[0].data(), *ys = to_[1].data(), *zs = to_[2].data();
    double *between = between_.data(), *ratio = ratio_.data();
    for (size_t n = begin; n < end; ++n) {
        const double dx = xs[n] - x, dy = ys[n] - y, dz = zs[n] - z;
        between[n] = dx * dx + dy * dy + dz * dz;
        ratio[n] = radius_square / between[n];
    }
    for (size_t n = begin; n < end; ++n) ratio[n] = std::cbrt(ratio[n]);
}

// The triples of the atom, neighbour `first` and later neighbours of one element.
void TripleNeighbors::add_triples(size_t first, int32_t first_slot, const Run& run,
                                  kernels::DispersionSums<double>& sums) {
    const size_t begin = std::max(run.begin, first + 1);
    const double radius = tables_->pair_radius[tables_->pair(first_slot, run.slot)];
    find_distances(first, begin, run.end, radius * radius);
    const double* c6 = tables_->c6_of(first_slot, run.slot);
    const auto references = static_cast<size_t>(tables_->reference_count[static_cast<size_t>(run.slot)]);
    double shares[kMaxReferences] = {};
    for (size_t q = 0; q < references; ++q)
        for (size_t p = 0; p < kMaxReferences; ++p)
            shares[q] += weights_[first * kMaxReferences + p] * c6[p * kMaxReferences + q];

    const double exponent = tables_->triple_exponent(), x = square_[first];
    const int whole_exponent = tables_->half_exponent() + 1;  // of cube roots: half of alpha + 2
    double energies = 0, by_count = 0, pulls = 0;
    for (size_t n = begin; n < run.end; ++n) {
        const double z = between_[n];
        if (!(z < kTripleCutoff * kTripleCutoff && z > kLeastSquare)) continue;
        double c6_between = 0;
        for (size_t q = 0; q < references; ++q) c6_between += shares[q] * weights_[n * kMaxReferences + q];
        const double y = square_[n], z_inverse = 1 / z;
        double c9 = kTripleStrength * root_[first] * root_[n] * std::sqrt(std::abs(c6_between));
        const double cubes = cube_[first] * cube_[n] * z_inverse * std::sqrt(z_inverse);
        const double squares = inverse_[first] * inverse_[n] * z_inverse;
        const double term = 6 * closeness_[first] * closeness_[n] * whole_power(ratio_[n], whole_exponent);
        const double damping = 1 / (1 + term);
        const double a = y + z - x, b = z + x - y, c = x + y - z, bc = b * c, ca = c * a, ab = a * b;
        const double cosines = 0.375 * a * bc * squares;
        if (tables_->method.is_smooth) c9 *= fade_out(std::sqrt(z), kFadeBegin, kTripleCutoff).value;
        const double strength = c9 * cubes * damping, energy = strength * (cosines + 1);
        const double common = energy * (exponent * term * damping - 3), fades = fade_[first] * fade_[n];
        const auto pull = [&](double by_angles, double inverse) {
            return 2 * strength * (0.375 * by_angles * squares - cosines * inverse) + common * inverse;
        };
        energies += fades * energy;
        by_count += fades * energy * (log_slope_[first] + log_slope_[n]);
        pulls += fades * pull(ca + ab - bc, inverse_[first]) + energy * fade_pull_[first] * fade_[n];
        pull_[n] += fades * pull(bc - ca + ab, inverse_[n]) + energy * fade_[first] * fade_pull_[n];
    }
    sums.energy += energies / 3;
    sums.by_count += 0.5 * by_count;
    pull_[first] += pulls;
}

}  // namespace mlff::dispersion::cpu
