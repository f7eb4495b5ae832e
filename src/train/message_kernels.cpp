// SPDX-License-Identifier: MIT
// The kernels of message_kernels.h on the CPU, as loops over atoms and channels.
#include "train/message_kernels.h"

#include <algorithm>

namespace mlff::train {
namespace {

template <bool HasVectors>
void run(MessageStage stage, const MessageEdges& edges, const MessageArrays& arrays, int64_t atom, int64_t channel) {
    const auto sum_channels = [&](int64_t edge, float x, float y, float z) {
        float* sum = arrays.grad_direction + 3 * (channel / 32 * edges.edges + edge);
        sum[0] += x;
        sum[1] += y;
        sum[2] += z;
    };
    switch (stage) {
        case MessageStage::sums: return message_sums<HasVectors>(edges, arrays, atom, channel);
        case MessageStage::gradient:
            if (arrays.grad_direction)
                return message_gradient<HasVectors, true>(edges, arrays, atom, channel, sum_channels);
            return message_gradient<HasVectors, false>(edges, arrays, atom, channel, sum_channels);
        case MessageStage::second_by_sender: return message_second_by_sender<HasVectors>(edges, arrays, atom, channel);
        case MessageStage::second_by_receiver:
            return message_second_by_receiver<HasVectors>(edges, arrays, atom, channel);
    }
}

}  // namespace

void run_message_stage_cpu(MessageStage stage, const MessageEdges& edges, const MessageArrays& arrays) {
    if (arrays.grad_direction) std::fill_n(arrays.grad_direction, edges.channels / 32 * edges.edges * 3, 0.0f);
    if (arrays.grad_filter) {
        const int64_t padding = edges.first[edges.atoms];
        std::fill(arrays.grad_filter + padding * 3 * edges.channels,
                  arrays.grad_filter + edges.edges * 3 * edges.channels, 0.0f);
    }
    for (int64_t atom = 0; atom < edges.atoms; ++atom)
        for (int64_t channel = 0; channel < edges.channels; ++channel)
            arrays.v ? run<true>(stage, edges, arrays, atom, channel) : run<false>(stage, edges, arrays, atom, channel);
}

#if !MLFF_TRAIN_CUDA_KERNELS
void run_message_stage_cuda(MessageStage, const MessageEdges&, const MessageArrays&, void*) {}
bool has_message_kernels_cuda() { return false; }
#endif

}  // namespace mlff::train
