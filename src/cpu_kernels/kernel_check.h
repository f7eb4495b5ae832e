// SPDX-License-Identifier: MIT
// Checks that the kernels of a table compute the same as scalar code.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cpu_kernels/kernel_table.h"

namespace mlff::kernels {

// A kernel whose results differ from those of scalar code.
struct KernelFault {
    std::string_view kernel;
    double deviation = 0;  // the largest, relative to the largest result; infinite for NaN
};

// The allowed deviation: rounding in a different order of summation.
template <class Real>
inline constexpr double kKernelTolerance = sizeof(Real) == 4 ? 2e-5 : 1e-13;

// Checks each kernel on inputs generated from `seed`. `is_small`: fixed sizes, as small as possible to cover all of a
// kernel's code, which takes a fraction of a millisecond. Otherwise the sizes depend on the seed too.
template <class Real>
std::vector<KernelFault> find_kernel_faults(const KernelTable<Real>& table, uint64_t seed, bool is_small);

// The result of the check of one instruction set's kernels, made on first use.
struct KernelState {
    std::string_view name;
    std::vector<KernelFault> faults_single, faults_double;

    bool is_right() const { return faults_single.empty() && faults_double.empty(); }
    std::string fault_text() const;  // "reverse_polynomial in single precision is off by 0.31"; "" if correct
};
std::vector<KernelState> check_all_kernels();  // those that this processor can run, best first

}  // namespace mlff::kernels
