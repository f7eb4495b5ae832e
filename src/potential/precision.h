// SPDX-License-Identifier: MIT
// The floating-point types that a model is evaluated with.
#pragma once

#include <string_view>

namespace mlff {

// The values are those of mlff_precision.
enum class Precision : int {
    automatic = 0,  // mixed if the model has it, otherwise fp64
    mixed = 1,      // features and messages in float; geometry, energies and forces in double
    fp64 = 2,
    fp32 = 3,  // all in float: Python models only
    fast = 4   // mixed, with radial functions from half-precision products: GPUs only
};

constexpr std::string_view precision_name(Precision precision) {
    switch (precision) {
        case Precision::automatic: return "auto";
        case Precision::mixed: return "mixed";
        case Precision::fp64: return "fp64";
        case Precision::fp32: return "fp32";
        case Precision::fast: return "fast";
    }
    return "unknown";
}

}  // namespace mlff
