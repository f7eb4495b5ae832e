// SPDX-License-Identifier: MIT
// Brings the names of the shared GPU engine, and of what all families like e3nn share, into MACE's namespace.
#pragma once

#include "equivariant/gpu/engine_names.h"
#include "mace/plan/names.h"

namespace mlff::mace::gpu {

using namespace equivariant::gpu;

}  // namespace mlff::mace::gpu
