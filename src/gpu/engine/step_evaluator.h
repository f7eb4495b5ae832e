// SPDX-License-Identifier: MIT
// The evaluator of every model on the GPU. One step goes from positions to results. It is one CUDA graph when its sizes
// and addresses repeat. For CUDA sources only.
#pragma once

#include <memory>

#include "gpu/engine/step_model.h"
#include "potential/model.h"

namespace mlff::gpu {

// Of the options it reads device, neighbor_skin, gpu_memory_limit_bytes and trust_meter. It finds neighbours itself,
// except for batches of periodic systems and for domains. Throws Error{device} if there is no such GPU. A system that
// does not fit in memory is an Error{memory}, which says how many atoms would fit.
std::unique_ptr<Evaluator> make_step_evaluator(const BackendOptions& options, const MakeStepModel& make_model);

// Sets the size of a buffer before a kernel uses it. Its capacity must have been reserved by the list of buffers.
template <class Buffer>
void use_listed(Buffer& buffer, int64_t count, const char* purpose) {
    if (count > buffer.capacity()) fail(Status::internal, "memory for ", purpose, " is not in the list of buffers");
    buffer.resize_discard(count, purpose);
}

}  // namespace mlff::gpu
