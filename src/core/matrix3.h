// SPDX-License-Identifier: MIT
// Vectors and 3x3 matrices: strains, cells, stresses.
#pragma once

#include <cstddef>

#include "core/system_view.h"

namespace mlff {

inline double dot(const Vec3& a, const Vec3& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

inline Vec3 cross(const Vec3& a, const Vec3& b) {
    return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}

inline constexpr Mat3 kIdentity = {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};

inline Mat3 product(const Mat3& a, const Mat3& b) {
    Mat3 result{};
    for (size_t i = 0; i < 3; ++i)
        for (size_t j = 0; j < 3; ++j)
            for (size_t k = 0; k < 3; ++k) result[i][j] += a[i][k] * b[k][j];
    return result;
}

inline Mat3 transposed(const Mat3& a) {
    return {{{a[0][0], a[1][0], a[2][0]}, {a[0][1], a[1][1], a[2][1]}, {a[0][2], a[1][2], a[2][2]}}};
}

inline double determinant(const Mat3& a) {
    return a[0][0] * (a[1][1] * a[2][2] - a[1][2] * a[2][1]) - a[0][1] * (a[1][0] * a[2][2] - a[1][2] * a[2][0]) +
           a[0][2] * (a[1][0] * a[2][1] - a[1][1] * a[2][0]);
}

// The determinant must not be zero.
inline Mat3 inverse(const Mat3& a) {
    const double scale = 1 / determinant(a);
    Mat3 result{};
    for (size_t i = 0; i < 3; ++i)
        for (size_t j = 0; j < 3; ++j) {
            const size_t r = (j + 1) % 3, s = (j + 2) % 3, p = (i + 1) % 3, q = (i + 2) % 3;
            result[i][j] = scale * (a[r][p] * a[s][q] - a[r][q] * a[s][p]);
        }
    return result;
}

// vector := matrix . vector, for each of `count` vectors
inline void transform_vectors(const Mat3& matrix, double* vectors, size_t count) {
    for (size_t i = 0; i < count; ++i, vectors += 3) {
        const Vec3 v = {vectors[0], vectors[1], vectors[2]};
        for (size_t k = 0; k < 3; ++k) vectors[k] = matrix[k][0] * v[0] + matrix[k][1] * v[1] + matrix[k][2] * v[2];
    }
}

// exp(matrix) by its series, for matrices whose entries are below one.
inline Mat3 exponential(const Mat3& matrix) {
    Mat3 sum = kIdentity, term = kIdentity;
    for (int order = 1; order <= 20; ++order) {
        term = product(term, matrix);
        for (size_t i = 0; i < 3; ++i)
            for (size_t j = 0; j < 3; ++j) {
                term[i][j] /= order;
                sum[i][j] += term[i][j];
            }
    }
    return sum;
}

}  // namespace mlff
