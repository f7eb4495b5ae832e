// SPDX-License-Identifier: MIT
// Wigner 3j symbols for real spherical harmonics in the order and with the signs of e3nn.
#pragma once

#include <vector>

namespace mlff {

// The tensor C[m1][m2][m3], row-major, of unit Frobenius norm with  sum C[a][b][c] Y1[a](u) Y2[b](v) Y3[c](w) invariant
// under rotations of u, v, w together. The sign: for l1 <= l2 <= l3 the centre entry is positive or, where that is
// zero, the first entry that is not; other orders permute the axes, an odd permutation also brings (-1)^(l1+l2+l3).
// Throws Error{internal} unless |l1 - l2| <= l3 <= l1 + l2 and all are at most kMaxDegree.
std::vector<double> wigner_3j(int degree1, int degree2, int degree3);

}  // namespace mlff
