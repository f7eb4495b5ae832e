// SPDX-License-Identifier: MIT
// What every backend of every family is told: all choices are made by then.
#pragma once

#include <cstdint>

#include "core/device.h"
#include "potential/precision.h"

namespace mlff {

struct BackendOptions {
    Device device;
    Precision precision = Precision::fp64;  // never automatic
    int head = 0;
    bool exact_radial = false;           // radial functions evaluated for every edge, not interpolated in tables
    double neighbor_skin = 0;            // angstrom; 0: neighbours are searched in every call
    int64_t gpu_memory_limit_bytes = 0;  // for atoms and edges, beside the model; 0: what is free

    // Features and messages in float.
    bool is_single() const { return precision == Precision::mixed || precision == Precision::fast; }
};

}  // namespace mlff
