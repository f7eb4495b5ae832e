// SPDX-License-Identifier: MIT
// Brings the names of the shared GPU engine into the namespace of the kernels of families like e3nn.
#pragma once

#include "gpu/engine/atom_rows.h"

namespace mlff::equivariant::gpu {

using namespace mlff::gpu;

}  // namespace mlff::equivariant::gpu
