// SPDX-License-Identifier: MIT
#include "cpu_kernels/kernel_table.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <vector>

#include "core/error.h"

namespace mlff::kernels {
namespace {

#if defined(__x86_64__)

#pragma GCC push_options
#pragma GCC target("avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")
namespace avx512 {
constexpr int kRegisterBytes = 64;
#include "cpu_kernels/kernels.inc"
#include "cpu_kernels/painn_kernels.inc"
#include "cpu_kernels/peak_kernel.inc"
#include "cpu_kernels/make_table.inc"
}  // namespace avx512
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx2,fma")
namespace avx2 {
constexpr int kRegisterBytes = 32;
#include "cpu_kernels/kernels.inc"
#include "cpu_kernels/painn_kernels.inc"
#include "cpu_kernels/peak_kernel.inc"
#include "cpu_kernels/make_table.inc"
}  // namespace avx2
#pragma GCC pop_options

#endif

namespace baseline {
constexpr int kRegisterBytes = 16;
#include "cpu_kernels/kernels.inc"
#include "cpu_kernels/painn_kernels.inc"
#include "cpu_kernels/peak_kernel.inc"
#include "cpu_kernels/make_table.inc"
}  // namespace baseline

#if defined(__aarch64__)
constexpr std::string_view kBaselineName = "neon";
#else
constexpr std::string_view kBaselineName = "baseline";
#endif

template <class Real>
std::vector<KernelTable<Real>> available_tables() {
    std::vector<KernelTable<Real>> tables;
#if defined(__x86_64__)
    const bool has_fma = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (has_fma && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw"))
        tables.push_back(avx512::make_table<Real>("avx512"));
    if (has_fma) tables.push_back(avx2::make_table<Real>("avx2"));
#endif
    tables.push_back(baseline::make_table<Real>(kBaselineName));
    return tables;
}

template <class Real>
const std::vector<KernelTable<Real>>& tables() {
    static const std::vector<KernelTable<Real>> available = available_tables<Real>();
    return available;
}

}  // namespace

std::string kernel_names() {
    std::string names;
    for (const auto& table : tables<float>()) names += (names.empty() ? "" : ", ") + std::string(table.name);
    return names;
}

template <class Real>
const KernelTable<Real>& choose_kernels() {
    const char* wanted = std::getenv("MLFF_CPU");
    if (!wanted || !*wanted) return tables<Real>().front();
    for (const auto& table : tables<Real>())
        if (table.name == wanted) return table;
    fail(Status::argument, "MLFF_CPU is '", wanted, "', but this processor has only ", kernel_names());
}

template const KernelTable<float>& choose_kernels<float>();
template const KernelTable<double>& choose_kernels<double>();

}  // namespace mlff::kernels
