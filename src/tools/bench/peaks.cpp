// SPDX-License-Identifier: MIT
#include "tools/bench/peaks.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "cpu_kernels/kernel_table.h"
#include "gpu/runtime/gpu_peaks.h"

namespace mlff::bench {
namespace {

// Takes the best of all trials: disturbances only make times longer.
double best_time(Clock& clock, ThreadTeam& team, int trials, const std::function<void(int64_t, int)>& part) {
    double best = 0;
    for (int trial = 0; trial <= trials; ++trial) {  // the first is a warm-up
        double elapsed = 0;
        {
            const Stopwatch watch(clock, elapsed);
            team.run(team.size(), part);
        }
        if (trial == 1 || (trial > 1 && elapsed < best)) best = elapsed;
    }
    return best;
}

template <class Real>
double peak_flops(Clock& clock, ThreadTeam& team) {
    constexpr int64_t kRounds = 500'000;  // about a millisecond: less likely to be disturbed than a longer time
    const auto& kernels = kernels::choose_kernels<Real>();
    std::vector<double> operations(static_cast<size_t>(team.size()));
    const double seconds = best_time(clock, team, 40, [&](int64_t chunk, int) {
        Real result = 0;
        operations[static_cast<size_t>(chunk)] = kernels.multiply_add(kRounds, &result);
        volatile Real kept = result;  // keeps the compiler from removing the work
        (void)kept;
    });
    double sum = 0;
    for (double one : operations) sum += one;
    return seconds > 0 ? sum / seconds : 0;
}

double peak_bytes(Clock& clock, ThreadTeam& team, int64_t all_bytes) {
    const int64_t count = all_bytes / 3 / static_cast<int64_t>(sizeof(double)), parts = team.size();
    std::vector<double> a(static_cast<size_t>(count)), b(a.size(), 1.0), c(a.size(), 2.0);
    const double seconds = best_time(clock, team, 5, [&](int64_t chunk, int) {
        const int64_t end = count * (chunk + 1) / parts;
        double* to = a.data();
        const double *from = b.data(), *scaled = c.data();
        for (int64_t i = count * chunk / parts; i < end; ++i) to[i] = from[i] + 3.0 * scaled[i];
    });
    return seconds > 0 ? static_cast<double>(3 * count) * sizeof(double) / seconds : 0;
}

}  // namespace

Peaks measure_peaks_of_gpu(int ordinal) {
    const GpuPeaks peaks = measure_gpu_peaks(ordinal);
    return {peaks.flops_single, peaks.flops_double, peaks.bytes};
}

Peaks measure_peaks(Clock& clock, ThreadTeam& team, int64_t triad_bytes) {
    return {peak_flops<float>(clock, team), peak_flops<double>(clock, team), peak_bytes(clock, team, triad_bytes)};
}

}  // namespace mlff::bench
