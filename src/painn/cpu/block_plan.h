// SPDX-License-Identifier: MIT
// The dense layers of one block, packed for the CPU kernels.
#pragma once

#include "painn/cpu/dense_layer.h"
#include "painn/weights/weights.h"

namespace mlff::painn::cpu {

template <class Real>
struct BlockPlan {
    // Messages and mixing of the first block are in FirstMessages. The last block does not compute vectors.
    BlockPlan(const Weights& weights, size_t number);

    bool is_last;
    DenseLayer<Real> message_hidden, message_output, mix;  // not in the first block
    DenseLayer<Real> update_hidden, update_output;

    int gates_width() const { return update_output.out_width(); }  // 3F; 2F in the last block, without a_vv
};

}  // namespace mlff::painn::cpu
