// SPDX-License-Identifier: MIT
// The kernels for AVX-512.
#if defined(__x86_64__)

#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

#include "cpu_kernels/available_kernels.h"
#include "cpu_kernels/instruction_set.h"

MLFF_BEGIN_TARGET("avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")
namespace mlff::kernels {
namespace {
namespace avx512 {

constexpr int kRegisterBytes = 64, kRegisterCount = 32;
#include "cpu_kernels/make_table.inc"

}  // namespace avx512
}  // namespace
}  // namespace mlff::kernels
MLFF_END_TARGET

namespace mlff::kernels {

template <class Real>
KernelTable<Real> avx512_kernels() {
    return avx512::make_table<Real>("avx512");
}
template KernelTable<float> avx512_kernels();
template KernelTable<double> avx512_kernels();

}  // namespace mlff::kernels

#endif
