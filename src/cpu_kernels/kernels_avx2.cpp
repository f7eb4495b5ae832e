// SPDX-License-Identifier: MIT
// The kernels for AVX2.
#if defined(__x86_64__)

#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

#include "cpu_kernels/available_kernels.h"
#include "cpu_kernels/instruction_set.h"

MLFF_BEGIN_TARGET("avx2,fma")
namespace mlff::kernels {
namespace {
namespace avx2 {

constexpr int kRegisterBytes = 32, kRegisterCount = 16;
#include "cpu_kernels/make_table.inc"

}  // namespace avx2
}  // namespace
}  // namespace mlff::kernels
MLFF_END_TARGET

namespace mlff::kernels {

template <class Real>
KernelTable<Real> avx2_kernels() {
    return avx2::make_table<Real>("avx2");
}
template KernelTable<float> avx2_kernels();
template KernelTable<double> avx2_kernels();

}  // namespace mlff::kernels

#endif
