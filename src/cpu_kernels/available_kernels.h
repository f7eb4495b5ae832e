// SPDX-License-Identifier: MIT
// The kernels that this processor can run. Whether they are right is another question: kernel_check.h.
#pragma once

#include <vector>

#include "cpu_kernels/kernel_table.h"

namespace mlff::kernels {

template <class Real>
std::vector<KernelTable<Real>> available_kernels();  // best first

// Of one instruction set each, whatever the processor has.
template <class Real>
KernelTable<Real> avx512_kernels();
template <class Real>
KernelTable<Real> avx2_kernels();
template <class Real>
KernelTable<Real> baseline_kernels();

}  // namespace mlff::kernels
