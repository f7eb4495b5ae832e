// SPDX-License-Identifier: MIT
// All kernels as plain scalar loops with double-precision sums. The fast kernels are compared with these; evaluations
// never use them.
#pragma once

#include "cpu_kernels/kernel_table.h"

namespace mlff::kernels {

template <class Real>
KernelTable<Real> scalar_kernels();

}  // namespace mlff::kernels
