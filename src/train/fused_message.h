// SPDX-License-Identifier: MIT
// sum_messages (message.h), computed by the kernels of message_kernels.h.
#pragma once

#include "train/message.h"

namespace mlff::train {

// For float32 and edge lists with `first` and `reverse`. The CPU version is for tests only.
NodeSums fused_sum_messages(const at::Tensor& phi, const at::Tensor& filter, const at::Tensor& v, const at::Tensor& u,
                            const EdgeLists& lists);

}  // namespace mlff::train
