// SPDX-License-Identifier: MIT
#include "tools/trust/least_squares.h"

#include <algorithm>
#include <cmath>

namespace mlff::trust {

NormalEquations::NormalEquations(size_t term_count)
    : size_(term_count), products_(term_count * term_count), sums_(term_count), targets_(term_count) {}

void NormalEquations::add(const std::vector<double>& terms, double target) {
    count_ += 1;
    for (size_t i = 0; i < size_; ++i) {
        const double term = terms[i];
        if (term == 0) continue;
        sums_[i] += term;
        targets_[i] += term * target;
        double* const row = products_.data() + i * size_;
        for (size_t j = i; j < size_; ++j) row[j] += term * terms[j];
    }
}

void NormalEquations::add(const NormalEquations& other, double factor) {
    const auto add_to = [factor](std::vector<double>& to, const std::vector<double>& from) {
        for (size_t i = 0; i < to.size(); ++i) to[i] += factor * from[i];
    };
    count_ += factor * other.count_;
    add_to(products_, other.products_);
    add_to(sums_, other.sums_);
    add_to(targets_, other.targets_);
}

std::vector<double> NormalEquations::solve(double penalty, size_t first_penalised) const {
    const double count = std::max(count_, 1.0);
    std::vector<double> matrix(size_ * size_), solution = targets_;
    for (size_t i = 0; i < size_; ++i)
        for (size_t j = i; j < size_; ++j) matrix[j * size_ + i] = products_[i * size_ + j];
    for (size_t i = 0; i < size_; ++i) {
        double& diagonal = matrix[i * size_ + i];
        const double mean = sums_[i] / count, variance = std::max(diagonal / count - mean * mean, 0.0);
        if (i >= first_penalised) diagonal += penalty * count * variance;
        diagonal += 1e-9 * diagonal + 1e-9;  // a term that never varies gets the weight 0
    }
    // Cholesky: matrix = L L^T, in its lower triangle.
    for (size_t j = 0; j < size_; ++j) {
        double* const row = matrix.data() + j * size_;
        for (size_t k = 0; k < j; ++k) {
            const double* const other = matrix.data() + k * size_;
            double sum = row[k];
            for (size_t m = 0; m < k; ++m) sum -= row[m] * other[m];
            row[k] = sum / other[k];
        }
        double sum = row[j];
        for (size_t m = 0; m < j; ++m) sum -= row[m] * row[m];
        row[j] = std::sqrt(std::max(sum, 1e-30));
    }
    for (size_t i = 0; i < size_; ++i) {
        for (size_t k = 0; k < i; ++k) solution[i] -= matrix[i * size_ + k] * solution[k];
        solution[i] /= matrix[i * size_ + i];
    }
    for (size_t i = size_; i-- > 0;) {
        for (size_t k = i + 1; k < size_; ++k) solution[i] -= matrix[k * size_ + i] * solution[k];
        solution[i] /= matrix[i * size_ + i];
    }
    return solution;
}

}  // namespace mlff::trust
