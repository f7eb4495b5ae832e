// SPDX-License-Identifier: MIT
// The evaluator of every model on the GPU: from positions to results in one step, which is one CUDA graph once its
// sizes and addresses have settled. For CUDA sources only.
#pragma once

#include <memory>

#include "gpu/engine/step_model.h"
#include "potential/model.h"

namespace mlff::gpu {

// Of the options it reads device, neighbor_skin and gpu_memory_limit_bytes. Finds neighbours itself, except those of
// batches with boundaries and of domains. Throws Error{device} without such a GPU. A system that does not fit in memory
// is refused with Error{memory}, which says what would.
std::unique_ptr<Evaluator> make_step_evaluator(const BackendOptions& options, const MakeStepModel& make_model);

// What a model has for the sizes of a step, to a kernel that is about to use it; capacity was taken from the list of
// buffers.
template <class Buffer>
void use_listed(Buffer& buffer, int64_t count, const char* purpose) {
    if (count > buffer.capacity()) fail(Status::internal, "memory for ", purpose, " is not in the list of buffers");
    buffer.resize_discard(count, purpose);
}

}  // namespace mlff::gpu
