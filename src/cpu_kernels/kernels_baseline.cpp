// SPDX-License-Identifier: MIT
// The kernels for any processor of the architecture: NEON on AArch64, SSE2 on x86-64.
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

#include "cpu_kernels/available_kernels.h"
#include "cpu_kernels/instruction_set.h"

namespace mlff::kernels {
namespace {
namespace baseline {

#if defined(__aarch64__)
constexpr std::string_view kName = "neon";
constexpr int kRegisterBytes = 16, kRegisterCount = 32;
#else
constexpr std::string_view kName = "baseline";
constexpr int kRegisterBytes = 16, kRegisterCount = 16;
#endif
#include "cpu_kernels/make_table.inc"

}  // namespace baseline
}  // namespace

template <class Real>
KernelTable<Real> baseline_kernels() {
    return baseline::make_table<Real>(baseline::kName);
}
template KernelTable<float> baseline_kernels();
template KernelTable<double> baseline_kernels();

}  // namespace mlff::kernels
