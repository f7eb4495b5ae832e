// SPDX-License-Identifier: MIT
// The shared kernels and tables, under the names that MACE's backends use.
#pragma once

#include "cpu_kernels/kernel_table.h"

namespace mlff::mace::plan {

using namespace kernels;

}  // namespace mlff::mace::plan
