// SPDX-License-Identifier: MIT
// Wigner 3j symbols for real spherical harmonics, in e3nn's order and sign convention.
#pragma once

#include <vector>

namespace mlff {

// The tensor C[m1][m2][m3], row-major, of unit Frobenius norm, for which  sum C[a][b][c] Y1[a](u) Y2[b](v) Y3[c](w) is
// invariant under joint rotations of u, v and w. Sign: for l1 <= l2 <= l3 the centre entry is positive or, if it is
// zero, the first non-zero entry. Other orders permute the axes; an odd permutation adds a factor (-1)^(l1+l2+l3).
// Throws Error{internal} unless |l1 - l2| <= l3 <= l1 + l2 and all degrees are at most kMaxDegree.
std::vector<double> wigner_3j(int degree1, int degree2, int degree3);

}  // namespace mlff
