// SPDX-License-Identifier: MIT
// The role of a thread in products on tensor cores. For CUDA sources only.
#pragma once

#include <cuda_runtime.h>

namespace mlff::gpu {

// Lane 4 g + q of a warp. See tensor_product.h, radial_product.h and instructions.h for the numbers that it holds.
struct ProductLane {
    int lane, warp, g, q;

    __device__ ProductLane()
        : lane(static_cast<int>(threadIdx.x % 32)),
          warp(static_cast<int>(threadIdx.x / 32)),
          g(lane / 4),
          q(lane % 4) {}
};

}  // namespace mlff::gpu
