// SPDX-License-Identifier: MIT
// The radial network of a layer as a table: quintic B-splines in the distance, with an error that was checked.
//
// Between r_i and r_i+1 a function is  sum over t < 6 of b_t(x) c[i + t],  x = (r - r_i) / h.  The coefficients
//   c_i = (13 f_i-2 - 112 f_i-1 + 438 f_i - 112 f_i+1 + 13 f_i+2) / 240
// reproduce polynomials of degree five; the spline has four continuous derivatives, so forces are smooth. What is stored and
// used are the c and their differences d[i] = c[i + 1] - c[i] (see SplinePoint): with the b adding up to 1,
//   value = c[i + 2] - b_0 d[i] - (b_0 + b_1) d[i+1] + (b_3 + b_4 + b_5) d[i+2] + (b_4 + b_5) d[i+3] + b_5 d[i+4].
#pragma once

#include "core/buffer.h"
#include "core/threads.h"
#include "mace/cpu/edge_functions.h"
#include "mace/cpu/kernel_table.h"

namespace mlff::mace::cpu {

template <class Real>
class RadialTable {
public:
    // The functions of one layer for one pair of elements, from `low` to the cutoff.
    // Throws Error{unsupported} if the error bound cannot be met with a table of sensible size.
    RadialTable(const EdgeFunctions& functions, int column_count, double low, double cutoff, int sender_element, int receiver_element, ThreadTeam& team);

    SplinePoint<Real> at(double distance) const;

    int interval_count() const { return interval_count_; }
    double worst_error() const { return worst_error_; }  // of a value, relative to the largest value

private:
    double low_ = 0;
    double inverse_step_ = 0;
    int interval_count_ = 0;
    int column_count_ = 0;
    double worst_error_ = 0;
    Buffer<Real> coefficients_;  // [interval_count + 5][c, d][column_count]
};

// Transforms with a power of r are not smooth at r = 0, and their tables begin here; below, the reference takes over.
double lowest_distance(const RadialEmbedding& radial);

// The part that changes with the elements of a pair: 0 for all pairs where the functions are the same for all.
bool depends_on_elements(const Weights& weights, const Interaction& interaction);

}  // namespace mlff::mace::cpu
