// SPDX-License-Identifier: MIT
// Brings what all families like e3nn share into MACE's namespace.
#pragma once

#include "equivariant/plan/kernel_table.h"

namespace mlff::mace::plan {

using namespace equivariant;

}  // namespace mlff::mace::plan
