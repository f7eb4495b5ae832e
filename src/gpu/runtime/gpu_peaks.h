// SPDX-License-Identifier: MIT
// What a GPU could do at most, measured.
#pragma once

namespace mlff {

struct GpuPeaks {
    double flops_single = 0, flops_double = 0;  // multiply-adds on registers, operations/s; tensor cores not used
    double bytes = 0;                           // a[i] = b[i] + s c[i] over arrays larger than caches, bytes/s
};

// Throws Error{device}. Defined once in gpu_peaks.cu and once in gpu_none.cpp.
GpuPeaks measure_gpu_peaks(int ordinal);

}  // namespace mlff
