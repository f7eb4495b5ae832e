// SPDX-License-Identifier: MIT
// Options of every backend of every family. Automatic choices have been made before.
#pragma once

#include <cstdint>
#include <memory>

#include "core/device.h"
#include "potential/optimizations.h"
#include "potential/precision.h"

namespace mlff {

struct TrustMeter;

struct BackendOptions {
    Device device;
    Precision precision = Precision::fp64;  // never automatic
    int head = 0;
    bool exact_radial = false;           // evaluate radial functions for every edge, without tables
    double neighbor_skin = 0;            // angstrom; 0: every call searches neighbours
    int64_t gpu_memory_limit_bytes = 0;  // for atoms and edges, without the model; 0: all that is free
    Optimizations optimizations = {};
    // For backends on GPUs, which measure trust themselves; nullptr if there is none.
    std::shared_ptr<const TrustMeter> trust_meter = {};

    // Whether features and messages are float.
    bool is_single() const { return precision == Precision::mixed || precision == Precision::fast; }
};

}  // namespace mlff
