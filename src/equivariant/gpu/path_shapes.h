// SPDX-License-Identifier: MIT
// The shapes of paths that kernels are specialised for. For CUDA sources only.
#pragma once

#include <cuda_runtime.h>

#include <type_traits>

namespace mlff::equivariant::gpu {

// For lambdas. The compiler calls large ones otherwise, and then their variables are in memory.
#define MLFF_INLINED __attribute__((always_inline))

template <int Count>
using Constant = std::integral_constant<int, Count>;

// Calls visit(components of senders, components of sums) with compile-time constants if both are 1, 3, 5 or 7, and
// the former at most `Most`. Returns whether it did.
template <int Most, class Visit>
__host__ __device__ __forceinline__ bool visit_path_shape(int in_components, int out_components, const Visit& visit) {
    const auto visit_if_few = [&]<int In>(Constant<In> in, auto out) MLFF_INLINED {
        if constexpr (In <= Most) visit(in, out);
        return In <= Most;
    };
    constexpr auto shape = [](int in, int out) { return 100 * in + out; };
    switch (shape(in_components, out_components)) {
        case shape(1, 1): return visit_if_few(Constant<1>(), Constant<1>());
        case shape(1, 3): return visit_if_few(Constant<1>(), Constant<3>());
        case shape(1, 5): return visit_if_few(Constant<1>(), Constant<5>());
        case shape(1, 7): return visit_if_few(Constant<1>(), Constant<7>());
        case shape(3, 1): return visit_if_few(Constant<3>(), Constant<1>());
        case shape(3, 3): return visit_if_few(Constant<3>(), Constant<3>());
        case shape(3, 5): return visit_if_few(Constant<3>(), Constant<5>());
        case shape(3, 7): return visit_if_few(Constant<3>(), Constant<7>());
        case shape(5, 1): return visit_if_few(Constant<5>(), Constant<1>());
        case shape(5, 3): return visit_if_few(Constant<5>(), Constant<3>());
        case shape(5, 5): return visit_if_few(Constant<5>(), Constant<5>());
        case shape(5, 7): return visit_if_few(Constant<5>(), Constant<7>());
        case shape(7, 1): return visit_if_few(Constant<7>(), Constant<1>());
        case shape(7, 3): return visit_if_few(Constant<7>(), Constant<3>());
        case shape(7, 5): return visit_if_few(Constant<7>(), Constant<5>());
        case shape(7, 7): return visit_if_few(Constant<7>(), Constant<7>());
        default: return false;
    }
}

}  // namespace mlff::equivariant::gpu
