// SPDX-License-Identifier: MIT
// For tests that need a GPU: they pass without one, unless MLFF_REQUIRE_GPU is set (scripts/test --gpu).
#pragma once

#include <doctest/doctest.h>

#include <cstdlib>

#include "gpu/runtime/gpu.h"

inline bool has_gpu() {
    const bool found = !mlff::gpu_inventory().gpus.empty();
    if (std::getenv("MLFF_REQUIRE_GPU")) REQUIRE(found);
    return found;
}
