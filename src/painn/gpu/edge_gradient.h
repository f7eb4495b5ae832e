// SPDX-License-Identifier: MIT
// From the gradients by the distance and direction of an edge to that by its vector. For CUDA sources only.
#pragma once

#include <cuda_runtime.h>

#include "gpu/engine/four.h"

namespace mlff::painn::gpu {

// Component k of the direction of an edge, and of the part of `turn` = dE/d(direction) that is perpendicular to it.
template <class Real>
struct EdgeComponent {
    Real direction, across;

    // `edge` is the direction and 1 / distance, as in EdgeFunctions.
    __device__ __forceinline__ EdgeComponent(const mlff::gpu::Four<Real>& edge, Real turn_x, Real turn_y, Real turn_z,
                                             int k) {
        const Real radial = turn_x * edge.of[0] + turn_y * edge.of[1] + turn_z * edge.of[2];
        const Real own_turn = k == 0 ? turn_x : k == 1 ? turn_y : turn_z;
        direction = k == 0 ? edge.of[0] : k == 1 ? edge.of[1] : edge.of[2];
        across = own_turn - radial * direction;
    }
};

}  // namespace mlff::painn::gpu
