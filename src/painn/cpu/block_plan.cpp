// SPDX-License-Identifier: MIT
#include "painn/cpu/block_plan.h"

#include <algorithm>

#include "painn/reference/dense.h"

namespace mlff::painn::cpu {

template <class Real>
BlockPlan<Real>::BlockPlan(const Weights& weights, size_t number)
    : is_first(number == 0),
      is_last(number + 1 == weights.blocks.size()),
      mix(weights.blocks[number].mix),
      update_hidden(weights.blocks[number].update_hidden),
      update_output(weights.blocks[number].update_output, (is_last ? 2 : 3) * weights.hidden) {
    const Block& block = weights.blocks[number];
    if (!is_first) {
        message_hidden = DenseLayer<Real>(block.message_hidden);
        message_output = DenseLayer<Real>(block.message_output);
        return;
    }
    const auto width = static_cast<size_t>(weights.hidden), elements = weights.atomic_numbers.size();
    std::vector<double> phi(3 * width);
    element_senders.resize_discard(elements * 6 * width);
    std::fill(element_senders.begin(), element_senders.end(), Real(0));
    constexpr size_t kChannels = kernels::kRowPadding;
    for (size_t element = 0; element < elements; ++element) {
        reference::compute_two_layers(block.message_hidden, block.message_output, &weights.embedding[element * width], phi.data());
        for (size_t i = 0; i < phi.size(); ++i) {
            const size_t part = i / width, strip = i % width / kChannels, channel = i % kChannels;
            element_senders[((strip * elements + element) * 6 + part) * kChannels + channel] = static_cast<Real>(phi[i]);
        }
    }
}

template struct BlockPlan<float>;
template struct BlockPlan<double>;

}  // namespace mlff::painn::cpu
