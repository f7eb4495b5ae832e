// SPDX-License-Identifier: MIT
// Brings the shared CPU kernels and tables into this namespace.
#pragma once

#include "cpu_kernels/kernel_table.h"

namespace mlff::equivariant {

using namespace kernels;

}  // namespace mlff::equivariant
