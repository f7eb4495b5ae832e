// SPDX-License-Identifier: MIT
// What an evaluation costs, as a function of its atoms and edges, fitted to measurements.
#pragma once

#include <cstdint>
#include <span>

namespace mlff::plan {

// What an evaluation has to do. `edges`: pairs of neighbours within the model's cutoff, each counted from both ends.
struct Load {
    int64_t atoms = 0, edges = 0;
};

struct Sample {
    Load load;
    double value = 0;  // seconds or bytes
};

struct LinearCost {
    double fixed = 0, per_atom = 0, per_edge = 0;  // none is negative
    double of(const Load& load) const {
        return fixed + per_atom * static_cast<double>(load.atoms) + per_edge * static_cast<double>(load.edges);
    }
};

// A device with room for more works as long on a few atoms as on fewer, and making a session takes more memory for a
// while than a few atoms do: below `floor` nothing comes out.
struct FlooredCost {
    double floor = 0;
    LinearCost linear;
    double of(const Load& load) const;
};

// Least squares of the relative errors, no coefficient negative. Errors of values below `resolution` count as if the
// value were that, so that what cannot be measured well does not decide. Throws Error{argument} without samples, or if
// a value is negative, not finite, or zero where there is no resolution.
LinearCost fit_linear_cost(std::span<const Sample> samples, double resolution = 0);

// With a floor where one explains the samples better than a line alone, also for the two numbers more that it takes.
FlooredCost fit_floored_cost(std::span<const Sample> samples, double resolution = 0);

// Of the samples, |predicted / measured - 1|, with `resolution` as above.
template <class Cost>
double largest_error(const Cost& cost, std::span<const Sample> samples, double resolution = 0) {
    double largest = 0;
    for (const Sample& sample : samples) {
        const double difference = cost.of(sample.load) - sample.value;
        const double error =
            (difference < 0 ? -difference : difference) / (sample.value > resolution ? sample.value : resolution);
        if (!(error <= largest)) largest = error;
    }
    return largest;
}

}  // namespace mlff::plan
