// SPDX-License-Identifier: MIT
// Functions of one distance: transform, basis, cutoff, pair repulsion.
#pragma once

#include "mace/weights/weights.h"

namespace mlff::mace {

struct ValueAndSlope {
    double value = 0;
    double slope = 0;
};

// f(r) = 1 - (p+1)(p+2)/2 t^p + p(p+2) t^(p+1) - p(p+1)/2 t^(p+2), t = r / radius
ValueAndSlope cutoff_function(const PolynomialCutoff& cutoff, double r);

// x(r) for a pair of elements
ValueAndSlope transform_distance(const RadialEmbedding& radial, int sender_element, int receiver_element, double r);

// b_n(x(r)) without the cutoff, with derivatives with respect to r.
void bare_basis(const RadialEmbedding& radial, int sender_element, int receiver_element, double r,
                std::vector<ValueAndSlope>& basis);

// basis[n] = b_n(x(r)) f(r) and *cutoff = 1; with cutoff_in_basis false, basis[n] = b_n(x(r)) and *cutoff = f(r).
void compute_radial(const RadialEmbedding& radial, int sender_element, int receiver_element, double r, double* basis,
                    double* cutoff);
// dE/dr from dE/dbasis and dE/dcutoff.
double reverse_radial(const RadialEmbedding& radial, int sender_element, int receiver_element, double r,
                      const double* basis_gradient, double cutoff_gradient);

// The energy of the receiver from one directed edge, and its derivative with respect to r.
ValueAndSlope pair_repulsion(const PairRepulsion& repulsion, const Weights& weights, int sender_element,
                             int receiver_element, double r);

}  // namespace mlff::mace
