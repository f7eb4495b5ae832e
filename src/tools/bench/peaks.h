// SPDX-License-Identifier: MIT
// Measures the peak rates of this machine, for comparison with the rates of stages.
#pragma once

#include "core/threads.h"
#include "tools/bench/measure.h"

namespace mlff::bench {

struct Peaks {
    double flops_single = 0, flops_double = 0;  // multiply-adds on registers, operations/s, sum over all threads
    double bytes = 0;  // a[i] = b[i] + s c[i] for arrays larger than the caches, bytes/s, sum over all threads
};

inline constexpr int64_t kTriadBytes = 192 << 20;  // of the three arrays together
Peaks measure_peaks_of_gpu(int ordinal);
Peaks measure_peaks(Clock& clock, ThreadTeam& team, int64_t triad_bytes = kTriadBytes);

}  // namespace mlff::bench
