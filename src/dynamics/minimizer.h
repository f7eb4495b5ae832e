// SPDX-License-Identifier: MIT
// A way downhill, one evaluation at a time. Variables come in threes (atoms, rows of a cell), and none of the threes
// moves farther than kLongestMove at once: models are trusted near where they were asked last only.
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
    // Moves `variables`, of which energy and gradient are known. The number of variables never changes.
    virtual void step(std::span<double> variables, double energy, std::span<const double> gradient) = 0;
};

// What a move must be multiplied by so that none of its threes is longer than kLongestMove.
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
