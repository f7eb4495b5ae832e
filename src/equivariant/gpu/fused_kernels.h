// SPDX-License-Identifier: MIT
// The two kernels of fused messages that work on items. Each is compiled for features of few and of most components.
// For CUDA sources only.
#pragma once

#include "equivariant/gpu/fused_messages.h"

namespace mlff::equivariant::gpu {

inline constexpr int kFewComponents = 3, kMostComponents = 7;

// Of a block of the kernels that work on items: each thread has 168 registers. With more warps less time would be spent
// waiting for memory, but features would have to be loaded again for every path, which costs more.
constexpr int kWarpsOfItems = 12;

enum PassKind { kScalarPass, kLowPass, kHighPass };  // see fused_forward.cu
using SumKernel = void (*)(FusedMessages::View, EdgesView<float>, RowsView<const float> senders, float* sums);
SumKernel sum_kernel_for(int most_components);

using ReverseKernel = void (*)(FusedMessages::View, EdgesView<float>, RowsView<const float> senders,
                               const float* sums_gradient);
ReverseKernel reverse_kernel_for(int most_components);

}  // namespace mlff::equivariant::gpu
