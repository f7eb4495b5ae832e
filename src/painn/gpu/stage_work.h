// SPDX-License-Identifier: MIT
// The work of the stages of a step on the GPU: operations of dense layers, filters and messages, and features that are
// read and written. Activations, padding, and weights, which stay in caches, are not counted.
#pragma once

#include "gpu/engine/step_work.h"
#include "gpu/engine/stored_number.h"
#include "painn/weights/weights.h"

namespace mlff::painn::gpu {

// The first block: moments, from four products for each function of an edge, and their products with a matrix. These
// are counted for one element of senders, since the host does not know how many there are. In reverse, an edge takes
// its gradients from those of the moments: four products with slopes, and three with values.
template <class Stored>
mlff::gpu::StepWork first_messages_work(const Weights& weights, bool is_reverse) {
    const double width = weights.hidden, functions = weights.radial_count;
    const double edge_products = 2 * (is_reverse ? 4 + 3 : 4) * functions,
                 edge_numbers = (is_reverse ? 2 : 1) * functions + 4;
    using Real = mlff::gpu::RealOf<Stored>;
    return {{2 * 4 * width * functions, 4 * width * sizeof(Real)}, {edge_products, edge_numbers * sizeof(Stored)}};
}

// For each edge: the filters, as sums over radial functions, and the products for s, u and v. In the reverse: filters
// and their slopes, and the gradients by the distance and the direction of the edge and by what the atom sent.
template <class Stored>
mlff::gpu::StepWork messages_work(const Weights& weights, size_t block, bool is_reverse) {
    if (block == 0) return first_messages_work<Stored>(weights, is_reverse);
    const double width = weights.hidden, functions = weights.radial_count;
    const double filters = 3 * 2 * functions, products = is_reverse ? 35 : 15, gathered_rows = is_reverse ? 4 : 5;
    const double edge_numbers = (is_reverse ? 2 : 1) * functions + 4 + width * gathered_rows;
    const double atom_numbers = width * (is_reverse ? 5 + 4 + 6 : 4 + 4);
    return {{0, atom_numbers * sizeof(mlff::gpu::RealOf<Stored>)},
            {width * ((is_reverse ? 2 : 1) * filters + products), edge_numbers * sizeof(Stored)}};
}

// Dense layers of the update of a block and of the message network of the next block or, after the last block, of the
// readout. The reverse has the same products.
template <class Real>
mlff::gpu::StepWork update_work(const Weights& weights, size_t block, bool is_reverse) {
    const double width = weights.hidden;
    const bool is_last = block + 1 == weights.blocks.size();
    // Mix and update, then readout or message network, in units of width^2.
    const double layers = 2 * (3 * 2 + 2 + (is_last ? 2 : 3)) + (is_last ? 1 : 2 * (1 + 3));
    const double kept = 6 + 1 + 2, rows = is_last      ? 4 + kept + 0.5
                                          : is_reverse ? kept + 4 + 3 + 3 + 2 + 4
                                                       : 4 + kept + 4 + 5 + 2;
    return {{layers * width * width, rows * width * sizeof(Real)}, {0, 0}};
}

}  // namespace mlff::painn::gpu
