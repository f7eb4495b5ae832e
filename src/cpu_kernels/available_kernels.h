// SPDX-License-Identifier: MIT
// The kernels that this processor can run. kernel_check.h tests whether they compute correct results.
#pragma once

#include <vector>

#include "cpu_kernels/kernel_table.h"

namespace mlff::kernels {

template <class Real>
std::vector<KernelTable<Real>> available_kernels();  // best first

// The table of one instruction set, whether or not the processor supports it.
template <class Real>
KernelTable<Real> avx512_kernels();
template <class Real>
KernelTable<Real> avx2_kernels();
template <class Real>
KernelTable<Real> baseline_kernels();

}  // namespace mlff::kernels
