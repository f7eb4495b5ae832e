// SPDX-License-Identifier: MIT
// How the results of several models become one: their sum, or the weighted mean of a committee. Parts join one after
// the other, so that no results but those of one part are kept beside the result.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include "core/host_device.h"

namespace mlff {

// How the numbers of a part join those of the parts before it. The first part's numbers are taken as they are.
struct Joining {
    bool adds = true;     // false: a mean
    double fraction = 0;  // of a mean: the part's weight / the weights of all parts so far
    double spread = 0;    // of a mean: the part's weight * (1 - fraction), for the variance; weights sum to 1

    // Parts that agree have exactly their number as the mean.
    MLFF_HOST_DEVICE double joined(double before, double number) const {
        return adds ? before + number : before + fraction * (number - before);
    }
    // What the part adds to the variance of a vector of `size` numbers, before it joins the mean.
    MLFF_HOST_DEVICE double added_variance(const double* mean, const double* numbers, int size) const {
        double square = 0;
        for (int k = 0; k < size; ++k) square += (numbers[k] - mean[k]) * (numbers[k] - mean[k]);
        return spread * square;
    }
    // The same where a part has only a share of a number: its square, once shares have been added, adds to the
    // variance.
    MLFF_HOST_DEVICE double deviation(double mean, double number) const { return std::sqrt(spread) * (number - mean); }
};

// [part]
inline std::vector<Joining> joining_as_sum(size_t part_count) { return std::vector<Joining>(part_count); }
// `weights`: positive, with sum 1.
inline std::vector<Joining> joining_as_mean(const std::vector<double>& weights) {
    std::vector<Joining> joinings;
    double so_far = 0;
    for (const double weight : weights) {
        so_far += weight;
        const double fraction = weight / so_far;
        joinings.push_back({false, fraction, weight * (1 - fraction)});
    }
    return joinings;
}

}  // namespace mlff
