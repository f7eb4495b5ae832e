// SPDX-License-Identifier: MIT
// Measures the peak rates of a GPU.
#pragma once

namespace mlff {

struct GpuPeaks {
    double flops_single = 0, flops_double = 0;  // multiply-adds on registers, operations/s; without tensor cores
    double bytes = 0;                           // a[i] = b[i] + s c[i] for arrays larger than the caches, bytes/s
};

// Throws Error{device}. Defined once in gpu_peaks.cu and once in gpu_none.cpp.
GpuPeaks measure_gpu_peaks(int ordinal);

}  // namespace mlff
