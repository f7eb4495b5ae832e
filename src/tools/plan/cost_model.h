// SPDX-License-Identifier: MIT
// The cost of an evaluation as a function of atoms and edges, fitted to measurements.
#pragma once

#include <cstdint>
#include <span>

namespace mlff::plan {

// The size of an evaluation. `edges`: neighbour pairs within the model's cutoff, counted in both directions.
struct Load {
    int64_t atoms = 0, edges = 0;
};

struct Sample {
    Load load;
    double value = 0;  // seconds or bytes
};

struct LinearCost {
    double fixed = 0, per_atom = 0, per_edge = 0;  // not negative
    double of(const Load& load) const {
        return fixed + per_atom * static_cast<double>(load.atoms) + per_edge * static_cast<double>(load.edges);
    }
};

// A linear cost with a lower bound. Below some size a device takes the same time for fewer atoms, and creating a
// session takes more memory than a few atoms do: the cost is never below `floor`.
struct FlooredCost {
    double floor = 0;
    LinearCost linear;
    double of(const Load& load) const;
};

// Least-squares fit of the relative errors with non-negative coefficients. For values below `resolution`, errors are
// relative to `resolution`, so that values that cannot be measured well do not dominate. Throws Error{argument} without
// samples, or if a value is negative, not finite, or zero without a resolution.
LinearCost fit_linear_cost(std::span<const Sample> samples, double resolution = 0);

// Uses a floor if it explains the samples better than a line alone, taking its two extra parameters into account.
FlooredCost fit_floored_cost(std::span<const Sample> samples, double resolution = 0);

// predicted / measured - 1| over the samples, with `resolution` as above.
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
