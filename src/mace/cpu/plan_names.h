// SPDX-License-Identifier: MIT
// The CPU backend uses the names of the plans as its own.
#pragma once

#include "mace/plan/row_layout.h"

namespace mlff::mace::cpu {

using namespace plan;

}  // namespace mlff::mace::cpu
