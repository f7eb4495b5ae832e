// SPDX-License-Identifier: MIT
// Linear least squares with a penalty on large weights (ridge regression), by normal equations.
#pragma once

#include <cstddef>
#include <vector>

namespace mlff::trust {

class NormalEquations {
public:
    explicit NormalEquations(size_t term_count);

    void add(const std::vector<double>& terms, double target);  // one observation
    void add(const NormalEquations& other, double factor);      // factor -1 takes observations away
    // The weights that minimise the sum of (terms . weights - target)^2 plus, for each term from `first_penalised` on,
    // penalty x number of observations x variance of the term x weight^2.
    std::vector<double> solve(double penalty, size_t first_penalised) const;

private:
    size_t size_;
    double count_ = 0;
    std::vector<double> products_, sums_, targets_;  // [term][term], [term], [term]
};

}  // namespace mlff::trust
