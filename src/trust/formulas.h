// SPDX-License-Identifier: MIT
// The formulas of a trust meter for one atom, for the CPU and the GPU.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/host_device.h"

namespace mlff::trust {

inline constexpr int kMostComponents = 32;
inline constexpr double kUnseenNovelty = 1000;  // of an element that training has not seen
inline constexpr double kSmallestRest = 1e-12;
inline constexpr float kLargestComponent = 5;  // beyond it a component counts no further for the score

// What the formulas read; pointers as in TrustMeter.
struct MeterView {
    int descriptor_count = 0, component_count = 0;
    const float* centers = nullptr;
    const float* directions = nullptr;
    const double* variances = nullptr;
    const double* limits = nullptr;
    const double* offsets = nullptr;
    const double* linear = nullptr;
    const double* quadratic = nullptr;
    const double* final_offsets = nullptr;
    double rest_variance = 1, rest_weight = 0, lowest_score = 0, highest_score = 0;
    double own_weight = 0, neighbor_weight = 0, count_weight = 0;
    double outside_error = 0, alarm_error = 0, radius = 1;
};

struct AtomScore {
    double score = 0;    // logarithm of an error
    double novelty = 0;  // distance from the training atoms, in units of the limit
};

// Sums over the components.
struct ScoreSums {
    double inside = 0, distance = 0, score = 0;
};

MLFF_HOST_DEVICE inline double limited(double component) {
    return component > kLargestComponent    ? kLargestComponent
           : component < -kLargestComponent ? -kLargestComponent
                                            : component;
}

// Adds what component `k` contributes. `row`: its linear coefficient + sum over i <= k of (quadratic coefficient of the
// pair i, k) x (limited component i).
MLFF_HOST_DEVICE inline void add_component(const MeterView& meter, int k, double component, double row,
                                           ScoreSums& sums) {
    sums.inside += meter.variances[k] * component * component;
    sums.distance += component * component;
    sums.score += limited(component) * row;
}
// Where the coefficients of the pairs (i, j) with j >= i begin, less i: that of a pair is at [j].
MLFF_HOST_DEVICE inline const double* pairs_of(const MeterView& meter, int i) {
    return meter.quadratic + (i * meter.component_count - i * (i + 1) / 2);
}

// From the sums over all components and the square of (descriptors - center).
MLFF_HOST_DEVICE inline AtomScore score_of(const MeterView& meter, int element, const ScoreSums& sums,
                                           double squared_length) {
    const double rest = squared_length > sums.inside ? squared_length - sums.inside : 0;
    const double distance = sums.distance + rest / meter.rest_variance;
    const double score =
        meter.offsets[element] + sums.score + meter.rest_weight * std::log(rest / meter.rest_variance + kSmallestRest);
    AtomScore result;
    result.score = score < meter.lowest_score    ? meter.lowest_score
                   : score > meter.highest_score ? meter.highest_score
                                                 : score;
    result.novelty = std::sqrt(distance / meter.limits[element]);
    return result;
}

MLFF_HOST_DEVICE inline AtomScore unseen_score(const MeterView& meter) { return {meter.highest_score, kUnseenNovelty}; }

// How much a neighbour at this distance counts.
MLFF_HOST_DEVICE inline double weight_at(double distance, double radius) {
    const double x = distance / radius, left = 1 - x * x;
    return x < 1 ? left * left : 0;
}

// eV/angstrom. `weight`: sum of the weights of the neighbours; `weighted`: the same of weight x exp(score).
// `element` -1: not seen.
MLFF_HOST_DEVICE inline double expected_error(const MeterView& meter, int element, const AtomScore& own, double weight,
                                              double weighted) {
    const double around = weight > 1e-9 ? std::log(weighted / weight) : own.score;
    const double offset = element >= 0 ? meter.final_offsets[element] : 0;
    const double error =
        std::exp(offset + meter.own_weight * own.score + meter.neighbor_weight * around + meter.count_weight * weight);
    return own.novelty > 1 && error < meter.outside_error ? meter.outside_error : error;
}

// Whether the force on an atom should not be trusted: it is unlike training, or its expected error is large.
MLFF_HOST_DEVICE inline bool is_outside(double alarm_error, double expected_error, double novelty) {
    return !(novelty <= 1 && expected_error <= alarm_error);
}

}  // namespace mlff::trust
