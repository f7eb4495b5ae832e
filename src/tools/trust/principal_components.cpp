// SPDX-License-Identifier: MIT
#include "tools/trust/principal_components.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>

namespace mlff::trust {
namespace {

// Eigenvectors of a symmetric matrix [size][size] by Jacobi's rotations, in the columns of `vectors`; its diagonal
// becomes the eigenvalues.
void diagonalise(std::vector<double>& matrix, std::vector<double>& vectors, size_t size) {
    vectors.assign(size * size, 0.0);
    for (size_t i = 0; i < size; ++i) vectors[i * size + i] = 1;
    for (int sweep = 0; sweep < 60; ++sweep) {
        double off = 0, diagonal = 0;
        for (size_t i = 0; i < size; ++i)
            for (size_t j = 0; j < size; ++j) (i == j ? diagonal : off) += matrix[i * size + j] * matrix[i * size + j];
        if (off <= 1e-26 * diagonal) return;
        for (size_t p = 0; p < size; ++p)
            for (size_t q = p + 1; q < size; ++q) {
                if (matrix[p * size + q] == 0) continue;
                const double theta = 0.5 * (matrix[q * size + q] - matrix[p * size + p]) / matrix[p * size + q];
                const double t = (theta < 0 ? -1 : 1) / (std::abs(theta) + std::sqrt(theta * theta + 1));
                const double c = 1 / std::sqrt(t * t + 1), s = t * c;
                const auto turn = [c, s](double& x, double& y) {
                    const double before = x;
                    x = c * before - s * y;
                    y = s * before + c * y;
                };
                for (size_t k = 0; k < size; ++k) turn(matrix[k * size + p], matrix[k * size + q]);
                for (size_t k = 0; k < size; ++k) turn(matrix[p * size + k], matrix[q * size + k]);
                for (size_t k = 0; k < size; ++k) turn(vectors[k * size + p], vectors[k * size + q]);
            }
    }
}

}  // namespace

PrincipalComponents principal_components(const std::vector<float>& rows, int width_in, int most) {
    const auto width = static_cast<size_t>(width_in);
    const size_t row_count = rows.size() / width;
    std::vector<double> covariance(width * width);
    for (size_t row = 0; row < row_count; ++row) {
        const float* const x = rows.data() + row * width;
        for (size_t i = 0; i < width; ++i) {
            const double xi = x[i];
            for (size_t j = i; j < width; ++j) covariance[i * width + j] += xi * x[j];
        }
    }
    for (size_t i = 0; i < width; ++i)
        for (size_t j = i; j < width; ++j)
            covariance[j * width + i] = covariance[i * width + j] /=
                static_cast<double>(std::max<size_t>(row_count, 1));
    double total = 0;
    for (size_t i = 0; i < width; ++i) total += covariance[i * width + i];
    std::vector<double> vectors;
    diagonalise(covariance, vectors, width);
    std::vector<size_t> order(width);
    std::iota(order.begin(), order.end(), size_t{0});
    const auto variance = [&](size_t i) { return covariance[i * width + i]; };
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return variance(a) > variance(b); });

    PrincipalComponents found;
    found.rest_variance = total;
    for (size_t k = 0; k < std::min(width, static_cast<size_t>(most)); ++k) {
        const size_t i = order[k];
        if (!(variance(i) > 1e-10 * total) && k > 0) break;
        found.variances.push_back(std::max(variance(i), 1e-30));
        found.rest_variance -= variance(i);
        for (size_t d = 0; d < width; ++d) found.directions.push_back(vectors[d * width + i]);
    }
    found.rest_variance = std::max(found.rest_variance, 0.0);
    return found;
}

}  // namespace mlff::trust
