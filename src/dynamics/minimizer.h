// SPDX-License-Identifier: MIT
// The interface of minimisers: one evaluation per step. Variables come in groups of three (atoms, rows of a cell). No
// group moves farther than kLongestMove in one step, because a model is reliable only near where it was last evaluated.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>

namespace mlff {

inline constexpr double kLongestMove = 0.2;  // angstrom

class Minimizer {
public:
    virtual ~Minimizer() = default;
    // Moves `variables`, given their energy and gradient. The number of variables never changes.
    virtual void step(std::span<double> variables, double energy, std::span<const double> gradient) = 0;
};

// The factor that limits every group of three in a move to kLongestMove.
inline double move_limit(std::span<const double> move) {
    double longest = 0;
    for (size_t i = 0; i + 2 < move.size(); i += 3)
        longest = std::max(longest, std::hypot(move[i], move[i + 1], move[i + 2]));
    return longest > kLongestMove ? kLongestMove / longest : 1;
}

inline double dot_product(std::span<const double> a, std::span<const double> b) {
    double sum = 0;
    for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return sum;
}

}  // namespace mlff
