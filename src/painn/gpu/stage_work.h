// SPDX-License-Identifier: MIT
// How much work the stages of a step on the GPU are: products and sums of dense layers, filters and messages, and the
// rows that are read and written. Activations, padding and weights, which stay in caches, are not counted.
#pragma once

#include "gpu/engine/gpu_stages.h"
#include "painn/weights/weights.h"

namespace mlff::painn::gpu {

// For each edge the filters, as sums over radial functions, and the products that give s, u and, but in the first
// block, v. In reverse filters and their slopes, and the gradients by the length and the direction of the edge and by
// what the other atom sent.
template <class Real>
mlff::gpu::StepWork messages_work(const Weights& weights, size_t block, bool is_reverse) {
    const double width = weights.hidden, functions = weights.radial_count;
    const bool is_first = block == 0;
    const double filters = (is_first ? 2 : 3) * 2 * functions,
                 products = is_reverse ? (is_first ? 18 : 35) : (is_first ? 9 : 15);
    const double sent_rows = is_first ? 0 : 5,
                 gradient_rows = is_reverse ? 4 : 0;  // in the first block what is sent depends on the element only
    const double edge_numbers = (is_reverse ? 2 : 1) * functions + 4 + width * (is_reverse ? gradient_rows : sent_rows);
    const double atom_numbers = width * (is_reverse ? 5 + 4 + 6 : 4 + 4);
    return {{0, atom_numbers * sizeof(Real)},
            {width * ((is_reverse ? 2 : 1) * filters + products), edge_numbers * sizeof(Real)}};
}

// Dense layers of a block's update and of what the atoms send next or, after the last block, of the readout. Their
// reverse has the same products.
template <class Real>
mlff::gpu::StepWork update_work(const Weights& weights, size_t block, bool is_reverse) {
    const double width = weights.hidden;
    const bool is_last = block + 1 == weights.blocks.size();
    const double layers = 2 * (3 * 2 + 2 + (is_last ? 2 : 3)) +
                          (is_last ? 1 : 2 * (1 + 3));  // mix, update; readout or message; in width^2
    const double kept = 6 + 1 + 2, rows = is_last      ? 4 + kept + 0.5
                                          : is_reverse ? kept + 4 + 3 + 3 + 2 + 4
                                                       : 4 + kept + 4 + 5 + 2;
    return {{layers * width * width, rows * width * sizeof(Real)}, {0, 0}};
}

}  // namespace mlff::painn::gpu
