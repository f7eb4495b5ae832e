// SPDX-License-Identifier: MIT
// Detects disturbances during a measurement: other programs on the processors, and changes of the processor's speed.
#pragma once

#include <string_view>

#include "tools/bench/measure.h"

namespace mlff::bench {

// Seconds, summed over all processors of the machine.
struct ProcessorTimes {
    double others = 0;  // used by other programs, or by other guests of the host
    double all = 0;     // idle or not; 0: not known
};
ProcessorTimes operator+(const ProcessorTimes& a, const ProcessorTimes& b);
ProcessorTimes operator-(const ProcessorTimes& a, const ProcessorTimes& b);
// Parses /proc/stat, and subtracts the time of this process.
ProcessorTimes parse_processor_times(std::string_view stat, double ticks_per_second, double own_seconds);
ProcessorTimes processor_times();  // since the machine booted

// The factor by which calls of `threads` threads may have been slowed down by other load on the machine's `cores`; 1:
// there was room for all.
double contention(const ProcessorTimes& spent, int cores, int threads);

// The time of a fixed piece of work on this thread, in seconds: the best of a few trials, half a millisecond in total.
// It is the same in every build, so differences come from the machine: its clock, or other work on the same core.
double probe_seconds(Clock& clock);

}  // namespace mlff::bench
