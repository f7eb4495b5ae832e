// SPDX-License-Identifier: MIT
// What else the machine did while something was measured: other programs on its processors, and a processor that is
// slower at some times than at others.
#pragma once

#include <string_view>

#include "tools/bench/measure.h"

namespace mlff::bench {

// Seconds of all processors of the machine together.
struct ProcessorTimes {
    double others = 0;  // taken by other programs, or by other guests of the host
    double all = 0;     // idle or not; 0: not known
};
ProcessorTimes operator+(const ProcessorTimes& a, const ProcessorTimes& b);
ProcessorTimes operator-(const ProcessorTimes& a, const ProcessorTimes& b);
// From the text of /proc/stat and what this process took itself.
ProcessorTimes parse_processor_times(std::string_view stat, double ticks_per_second, double own_seconds);
ProcessorTimes processor_times();  // since the machine was started

// How many times longer calls of `threads` threads may have taken because others were on the machine's `cores`
// meanwhile; 1: there was room for all.
double contention(const ProcessorTimes& spent, int cores, int threads);

// How long a fixed piece of work takes this thread, in seconds, the best of a few trials: half a millisecond in all. It
// is the same in every build, so what it takes longer at one time than at another is the machine's doing: its clock, or
// a neighbour on the same core.
double probe_seconds(Clock& clock);

}  // namespace mlff::bench
