// SPDX-License-Identifier: MIT
// What this machine could do at most, measured: the rates that stages are held against.
#pragma once

#include "core/threads.h"
#include "tools/bench/measure.h"

namespace mlff::bench {

struct Peaks {
    double flops_single = 0, flops_double = 0;  // multiply-adds on registers, operations/s, all threads together
    double bytes = 0;  // a[i] = b[i] + s c[i] over arrays larger than caches, bytes/s, all threads together
};

inline constexpr int64_t kTriadBytes = 192 << 20;  // of the three arrays together
Peaks measure_peaks_of_gpu(int ordinal);
Peaks measure_peaks(Clock& clock, ThreadTeam& team, int64_t triad_bytes = kTriadBytes);

}  // namespace mlff::bench
