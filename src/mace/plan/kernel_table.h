// SPDX-License-Identifier: MIT
// Brings the shared CPU kernels and tables into MACE's namespace.
#pragma once

#include "cpu_kernels/kernel_table.h"

namespace mlff::mace::plan {

using namespace kernels;

}  // namespace mlff::mace::plan
