// SPDX-License-Identifier: MIT
// Do the kernels of a table compute what scalar code computes?
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cpu_kernels/kernel_table.h"

namespace mlff::kernels {

// A kernel whose numbers are not those of scalar code.
struct KernelFault {
    std::string_view kernel;
    double deviation =
        0;  // the largest, relative to the largest number of the result; infinite where that is not a number
};

// How far a kernel may be off: rounding, in another order.
template <class Real>
inline constexpr double kKernelTolerance = sizeof(Real) == 4 ? 2e-5 : 1e-13;

// Each kernel on inputs from `seed`. `is_small`: sizes are fixed and as small as goes through all of a kernel's code,
// which takes a fraction of a millisecond; else they come from the seed too.
template <class Real>
std::vector<KernelFault> find_kernel_faults(const KernelTable<Real>& table, uint64_t seed, bool is_small);

// What was found of the kernels of one instruction set when they were first asked for.
struct KernelState {
    std::string_view name;
    std::vector<KernelFault> faults_single, faults_double;

    bool is_right() const { return faults_single.empty() && faults_double.empty(); }
    std::string fault_text() const;  // "reverse_polynomial in single precision is off by 0.31"; "" if right
};
std::vector<KernelState> check_all_kernels();  // those this processor can run, best first

}  // namespace mlff::kernels
