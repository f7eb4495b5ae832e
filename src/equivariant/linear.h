// SPDX-License-Identifier: MIT
// Linear maps of the features of one atom.
#pragma once

#include <vector>

#include "equivariant/irreps.h"

namespace mlff {

// out[w] = sum over paths into this block, sum over u of weight[element][u][w] in[u]  (+ bias), the same for every
// component.
struct Linear {
    struct Path {
        int in_block = 0;
        int out_block = 0;
        std::vector<double> weight;  // [element_count][copies in][copies out], with the normalisation
    };
    Irreps in;
    Irreps out;
    int element_count = 1;  // 1: the same for all elements
    std::vector<Path> paths;
    std::vector<double> bias;  // [out.dimension()], or empty
};

// out[w][m] = sum over paths, u of weight[element][u][w] in[u][m] + bias
void compute_linear(const Linear& linear, int element, const double* in, double* out);
// Adds the gradient with respect to `in`.
void reverse_linear(const Linear& linear, int element, const double* out_gradient, double* in_gradient);

}  // namespace mlff
