// SPDX-License-Identifier: MIT
// One block of a model, laid out for the CPU kernels.
#pragma once

#include "painn/cpu/dense_layer.h"
#include "painn/weights.h"

namespace mlff::painn::cpu {

template <class Real>
struct BlockPlan {
    // In the first block, phi depends on the element alone and vectors are zero; after the last, vectors are not needed.
    BlockPlan(const Weights& weights, size_t number);

    bool is_first, is_last;
    Buffer<Real> element_senders;  // first block only: [strip][element][phi_s, phi_v, phi_u, three rows of zeros][channel]
    DenseLayer<Real> message_hidden, message_output, mix, update_hidden, update_output;

    int gates_width() const { return update_output.out_width(); }  // 3F; 2F in the last block, without a_vv
};

}  // namespace mlff::painn::cpu
