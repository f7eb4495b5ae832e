// SPDX-License-Identifier: MIT
#include "tools/bench/disturbance.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <string>
#include <vector>

namespace mlff::bench {

ProcessorTimes operator+(const ProcessorTimes& a, const ProcessorTimes& b) {
    return {a.others + b.others, a.all + b.all};
}
ProcessorTimes operator-(const ProcessorTimes& a, const ProcessorTimes& b) {
    return {a.others - b.others, a.all - b.all};
}

// "cpu  user nice system idle iowait irq softirq steal guest guest_nice"; user already includes guests of this machine.
ProcessorTimes parse_processor_times(std::string_view stat, double ticks_per_second, double own_seconds) {
    constexpr size_t kIdle = 3, kWaiting = 4;
    double ticks[8] = {};
    const std::string line(stat.substr(0, stat.find('\n')));
    if (std::sscanf(line.c_str(), "cpu %lf %lf %lf %lf %lf %lf %lf %lf", &ticks[0], &ticks[1], &ticks[2], &ticks[3],
                    &ticks[4], &ticks[5], &ticks[6], &ticks[7]) < 8)
        return {};
    ProcessorTimes times;
    for (double one : ticks) times.all += one / ticks_per_second;
    times.others = times.all - (ticks[kIdle] + ticks[kWaiting]) / ticks_per_second - own_seconds;
    return times;
}

ProcessorTimes processor_times() {
    std::string line;
    std::getline(std::ifstream("/proc/stat"), line);
    timespec own{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &own);
    return parse_processor_times(line, static_cast<double>(sysconf(_SC_CLK_TCK)),
                                 static_cast<double>(own.tv_sec) + 1e-9 * static_cast<double>(own.tv_nsec));
}

double contention(const ProcessorTimes& spent, int cores, int threads) {
    constexpr double kLeastRoom = 0.01;  // fraction of the machine
    if (!(spent.all > 0)) return 1;
    const double room = std::max(kLeastRoom, 1 - spent.others / spent.all) * cores;
    return std::max(1.0, threads / room);
}

double probe_seconds(Clock& clock) {
    constexpr size_t kNumbers = 4096;  // fit into the L1 cache
    constexpr int kTrials = 4, kRounds = 20;
    static std::vector<double> numbers(kNumbers, 1.0);
    double best = 0;
    for (int trial = 0; trial < kTrials; ++trial) {
        double elapsed = 0;
        {
            const Stopwatch watch(clock, elapsed);
            for (size_t round = 0; round < kRounds; ++round)
                for (size_t i = 0; i < kNumbers; ++i)
                    numbers[i] = 0.999 * numbers[i] + 0.001 * numbers[(73 * i + round) % kNumbers];
        }
        if (trial == 0 || elapsed < best) best = elapsed;
    }
    return best;
}

}  // namespace mlff::bench
