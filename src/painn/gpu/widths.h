// SPDX-License-Identifier: MIT
// The numbers of channels F that kernels are compiled for.
#pragma once

#include <type_traits>

#include "core/error.h"

namespace mlff::painn::gpu {

inline constexpr bool is_compiled_width(int width) {
    return width == 32 || width == 64 || width == 128 || width == 256;
}

// Calls action(width) with the width as a compile-time constant.
template <class Action>
void with_width(int width, const Action& action) {
    switch (width) {
        case 32: return action(std::integral_constant<int, 32>());
        case 64: return action(std::integral_constant<int, 64>());
        case 128: return action(std::integral_constant<int, 128>());
        case 256: return action(std::integral_constant<int, 256>());
        default: fail(Status::internal, "no kernels of width ", width);
    }
}

}  // namespace mlff::painn::gpu
