// SPDX-License-Identifier: MIT
// The GPU backend: the stages of the CPU backend, each a kernel over all atoms, from positions to forces on the device.
#pragma once

#include <memory>
#include <string>

#include "mace/weights/weights.h"
#include "potential/evaluator.h"

namespace mlff::mace::gpu {

// "" if the GPU backend has all that the model needs, else what it lacks; in builds without CUDA, that.
std::string why_not_on_gpu(const Weights& weights);

struct CudaOptions {
    int device = 0;
    int head = 0;
    bool is_single =
        false;  // features and messages in float, geometry, energies and forces in double; else all in double
    double neighbor_skin = 0;        // angstrom; 0: neighbours are searched in every call
    int64_t memory_limit_bytes = 0;  // for atoms and edges, beside the model; 0: what is free
    bool is_fast = false;            // single: radial weights from plain half-precision products
    int64_t message_scratch_bytes =
        0;  // at most so much for edges whose messages are in the making; 0: what is sensible
};

// For sessions whose user chose none: a step without a search needs no word with the host. The edges are the same with
// any skin.
inline constexpr double kDefaultSkin = 1;  // angstrom

// Finds neighbours itself, except those of joined systems. Throws Error{unsupported} if why_not_on_gpu has a reason,
// Error{device} without such a GPU. A system that does not fit in memory is refused with Error{memory}, which says what
// would. Systems with atoms so close that tables of radial functions do not reach are refused with Error{system}.
std::unique_ptr<Evaluator> make_gpu_evaluator(std::shared_ptr<const Weights> weights, const CudaOptions& options);

}  // namespace mlff::mace::gpu
