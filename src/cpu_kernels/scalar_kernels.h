// SPDX-License-Identifier: MIT
// All kernels as plain loops over numbers, summed in double precision: what the fast ones are compared with, never
// chosen.
#pragma once

#include "cpu_kernels/kernel_table.h"

namespace mlff::kernels {

template <class Real>
KernelTable<Real> scalar_kernels();

}  // namespace mlff::kernels
