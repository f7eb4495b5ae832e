// SPDX-License-Identifier: MIT
#include "painn/cpu/block_plan.h"

namespace mlff::painn::cpu {

template <class Real>
BlockPlan<Real>::BlockPlan(const Weights& weights, size_t number)
    : is_last(number + 1 == weights.blocks.size()),
      update_hidden(weights.blocks[number].update_hidden),
      update_output(weights.blocks[number].update_output, (is_last ? 2 : 3) * weights.hidden) {
    if (number == 0) return;
    const Block& block = weights.blocks[number];
    message_hidden = DenseLayer<Real>(block.message_hidden);
    message_output = DenseLayer<Real>(block.message_output);
    mix = DenseLayer<Real>(block.mix);
}

template struct BlockPlan<float>;
template struct BlockPlan<double>;

}  // namespace mlff::painn::cpu
