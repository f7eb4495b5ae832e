// SPDX-License-Identifier: MIT
#include "cpu_kernels/available_kernels.h"

namespace mlff::kernels {

template <class Real>
std::vector<KernelTable<Real>> available_kernels() {
    std::vector<KernelTable<Real>> tables;
#if defined(__x86_64__)
    const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (has_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw"))
        tables.push_back(avx512_kernels<Real>());
    if (has_avx2) tables.push_back(avx2_kernels<Real>());
#endif
    tables.push_back(baseline_kernels<Real>());
    return tables;
}

template std::vector<KernelTable<float>> available_kernels();
template std::vector<KernelTable<double>> available_kernels();

}  // namespace mlff::kernels
