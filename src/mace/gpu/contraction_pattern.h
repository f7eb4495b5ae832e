// SPDX-License-Identifier: MIT
// The monomials that symmetric contractions of harmonics up to degree 3 can have, with up to three factors, as
// constants. Kernels that are compiled for them have all factors in registers.
#pragma once

#include <cstdint>

namespace mlff::mace::gpu {

// A monomial is the product of its first `level` rows, which ascend. In preorder, those with fewer factors first.
struct PatternMonomial {
    int8_t level = 0, rows[3] = {};
};

inline constexpr int kPatternInDegree = 3, kPatternRows = (kPatternInDegree + 1) * (kPatternInDegree + 1);
inline constexpr int kPatternLevels = 3;
inline constexpr int kMostPatternOutDegree = 2;

namespace pattern_detail {

constexpr int degree_of(int row) { return row < 1 ? 0 : row < 4 ? 1 : row < 9 ? 2 : 3; }
constexpr int order_of(int row) { return row - degree_of(row) * (degree_of(row) + 1); }

// Whether the integral of the product of real harmonics may differ from zero: parity, the polygon of degrees,
// reflection and rotation about the axis.
constexpr bool may_couple(const int (&rows)[4], int count) {
    int sum = 0, largest = 0, sines = 0;
    for (int i = 0; i < count; ++i) {
        const int degree = degree_of(rows[i]);
        sum += degree;
        largest = degree > largest ? degree : largest;
        sines += order_of(rows[i]) < 0;
    }
    if (sum % 2 != 0 || 2 * largest > sum || sines % 2 != 0) return false;
    for (int signs = 0; signs < 1 << count; ++signs) {
        int order = 0;
        for (int i = 0; i < count; ++i) order += (signs >> i & 1) != 0 ? order_of(rows[i]) : -order_of(rows[i]);
        if (order == 0) return true;
    }
    return false;
}

}  // namespace pattern_detail

// Those of one row of the result.
struct RowPattern {
    int count = 0;
    PatternMonomial of[kPatternRows + kPatternRows * kPatternRows + 512] = {};
};
constexpr RowPattern list_row_pattern(int out_row) {
    using pattern_detail::may_couple;
    RowPattern list;
    const auto add = [&](int level, int i, int j, int k) {
        list.of[list.count++] = {static_cast<int8_t>(level),
                                 {static_cast<int8_t>(i), static_cast<int8_t>(j), static_cast<int8_t>(k)}};
    };
    for (int i = 0; i < kPatternRows; ++i) {
        add(1, i, 0, 0);
        for (int j = i; j < kPatternRows; ++j) {
            bool has_pair = may_couple({out_row, i, j, 0}, 3);
            if (has_pair) add(2, i, j, 0);
            for (int k = j; k < kPatternRows; ++k) {
                if (!may_couple({out_row, i, j, k}, 4)) continue;
                if (!has_pair) add(2, i, j, 0);
                has_pair = true;
                add(3, i, j, k);
            }
        }
    }
    return list;
}
template <int OutRow>
inline constexpr RowPattern kRowPattern = list_row_pattern(OutRow);

// Coefficients are stored in groups of four, those of each row from a new group on. The first group of a row, counted
// from the first row.
constexpr int first_pattern_group(int out_row) {
    constexpr int counts[] = {kRowPattern<0>.count, kRowPattern<1>.count, kRowPattern<2>.count,
                              kRowPattern<3>.count, kRowPattern<4>.count, kRowPattern<5>.count,
                              kRowPattern<6>.count, kRowPattern<7>.count, kRowPattern<8>.count};
    int groups = 0;
    for (int row = 0; row < out_row; ++row) groups += (counts[row] + 3) / 4;
    return groups;
}

}  // namespace mlff::mace::gpu
