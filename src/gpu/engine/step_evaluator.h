// SPDX-License-Identifier: MIT
// The evaluator of every model on the GPU: from positions to results in one step, which is one CUDA graph once its
// sizes and addresses have settled. For CUDA sources only.
#pragma once

#include <functional>
#include <memory>

#include "gpu/engine/step_model.h"
#include "potential/evaluator.h"

namespace mlff::gpu {

struct StepOptions {
    int device = 0;
    double neighbor_skin = 0;        // angstrom; 0: neighbours are searched in every call
    int64_t memory_limit_bytes = 0;  // for atoms and edges, beside the model; 0: what is free
};

// Makes the model while the device is current; its uploads go through the stream, which is that of all steps.
using MakeStepModel = std::function<std::unique_ptr<StepModel>(cudaStream_t stream)>;

// Finds neighbours itself, except those of joined systems and domains. A system that does not fit in memory is refused
// with Error{memory}, which says what would.
std::unique_ptr<Evaluator> make_step_evaluator(const StepOptions& options, const MakeStepModel& make_model);

// What a model has for the sizes of a step, to a kernel that is about to use it; capacity was taken from the list of
// buffers.
template <class Buffer>
void use_listed(Buffer& buffer, int64_t count, const char* purpose) {
    if (count > buffer.capacity()) fail(Status::internal, "memory for ", purpose, " is not in the list of buffers");
    buffer.resize_discard(count, purpose);
}

}  // namespace mlff::gpu
