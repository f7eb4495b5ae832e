// SPDX-License-Identifier: MIT
// The GPU backend of PaiNN: two kernels for each block forward and two back, from positions to forces on the device.
#pragma once

#include <memory>
#include <string>

#include "painn/weights/weights.h"
#include "potential/evaluator.h"

namespace mlff::painn::gpu {

// "" if the GPU backend can run the model, else what it lacks; in builds without CUDA, that.
std::string why_not_on_gpu(const Weights& weights);

struct CudaOptions {
    int device_ordinal = 0;
    bool is_mixed =
        true;  // features and messages in float; geometry, energies and forces in double. Else all in double
    bool is_fast = false;            // mixed: filters from plain half-precision products
    double neighbor_skin = 0;        // angstrom; 0: neighbours are searched in every call
    int64_t memory_limit_bytes = 0;  // for atoms and edges, beside the model; 0: what is free
};

// For sessions whose user chose none: a step without a search needs no word with the host. The edges are the same with
// any skin.
inline constexpr double kDefaultSkin = 1.0;  // angstrom

// Finds neighbours itself, except those of joined systems. Throws Error{unsupported} if why_not_on_gpu has a reason,
// Error{device} without such a GPU. A system that does not fit in memory is refused with Error{memory}, which says what
// would; atoms at the same place with Error{system}.
std::unique_ptr<Evaluator> make_gpu_evaluator(std::shared_ptr<const Weights> weights, const CudaOptions& options);

}  // namespace mlff::painn::gpu
