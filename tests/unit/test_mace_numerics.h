// SPDX-License-Identifier: MIT
// Random numbers, finite differences and rotations for the tests of single stages.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "equivariant/spherical_harmonics.h"

namespace mace_test {

class Random {
public:
    double number() {  // in [-1, 1)
        state_ = state_ * 6364136223846793005u + 1442695040888963407u;
        return static_cast<double>(state_ >> 11) / static_cast<double>(uint64_t{1} << 52) - 1;
    }
    std::vector<double> numbers(size_t count) {
        std::vector<double> result(count);
        for (double& value : result) value = number();
        return result;
    }

private:
    uint64_t state_ = 2024;
};

using Function = std::function<std::vector<double>(const std::vector<double>&)>;

inline double dot(const std::vector<double>& a, const std::vector<double>& b) {
    double sum = 0;
    for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return sum;
}

// gradient must be d(weights . f(x))/dx: compares all components with central differences.
inline void check_gradient(const Function& f, std::vector<double> x, const std::vector<double>& weights,
                           const std::vector<double>& gradient) {
    REQUIRE(gradient.size() == x.size());
    const double step = 1e-5;
    for (size_t i = 0; i < x.size(); ++i) {
        const double before = x[i];
        x[i] = before + step;
        const double up = dot(weights, f(x));
        x[i] = before - step;
        const double down = dot(weights, f(x));
        x[i] = before;
        const double slope = (up - down) / (2 * step);
        CHECK(std::abs(gradient[i] - slope) <= 1e-7 * std::max(1.0, std::abs(slope)));
    }
}

// D[a][b] with Y(R u) = D Y(u) for one degree, from harmonics of directions that span the space.
inline std::vector<double> rotation_matrix(int degree, const double rotation[3][3]) {
    const auto size = static_cast<size_t>(2 * degree + 1);
    Random random;
    std::vector<double> normal(size * size, 0.0), mixed(size * size, 0.0);
    std::vector<double> before(static_cast<size_t>(mlff::harmonic_count(degree))), after(before.size());
    for (int sample = 0; sample < 200; ++sample) {
        mlff::Vec3 u = {random.number(), random.number(), random.number()}, v{};
        const double r = std::sqrt(u[0] * u[0] + u[1] * u[1] + u[2] * u[2]);
        for (double& value : u) value /= r;
        for (size_t i = 0; i < 3; ++i)
            for (size_t j = 0; j < 3; ++j) v[i] += rotation[i][j] * u[j];
        mlff::compute_harmonics(degree, u, before.data());
        mlff::compute_harmonics(degree, v, after.data());
        const auto first = static_cast<size_t>(degree * degree);
        for (size_t a = 0; a < size; ++a)
            for (size_t b = 0; b < size; ++b) {
                normal[a * size + b] += before[first + a] * before[first + b];
                mixed[a * size + b] += before[first + a] * after[first + b];
            }
    }
    // Solves normal * D^T = mixed by Gaussian elimination with pivots.
    for (size_t column = 0; column < size; ++column) {
        size_t pivot = column;
        for (size_t row = column; row < size; ++row)
            if (std::abs(normal[row * size + column]) > std::abs(normal[pivot * size + column])) pivot = row;
        for (size_t k = 0; k < size; ++k) {
            std::swap(normal[pivot * size + k], normal[column * size + k]);
            std::swap(mixed[pivot * size + k], mixed[column * size + k]);
        }
        for (size_t row = 0; row < size; ++row) {
            if (row == column) continue;
            const double factor = normal[row * size + column] / normal[column * size + column];
            for (size_t k = 0; k < size; ++k) {
                normal[row * size + k] -= factor * normal[column * size + k];
                mixed[row * size + k] -= factor * mixed[column * size + k];
            }
        }
    }
    std::vector<double> d(size * size);
    for (size_t a = 0; a < size; ++a)
        for (size_t b = 0; b < size; ++b) d[b * size + a] = mixed[a * size + b] / normal[a * size + a];
    return d;
}

inline constexpr double kCos = 0.6, kSin = 0.8;
inline constexpr double kRotation[3][3] = {
    {kCos, -kSin, 0}, {kSin * kCos, kCos* kCos, -kSin}, {kSin * kSin, kCos* kSin, kCos}};

}  // namespace mace_test
