// SPDX-License-Identifier: MIT
// Repeated calls and how long each took. Clock and memory are asked through interfaces, so that tests can say what they
// answer.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace mlff::bench {

class Clock {
public:
    virtual ~Clock() = default;
    virtual double seconds() = 0;  // since some fixed moment; never goes back
};

class SteadyClock : public Clock {
public:
    double seconds() override;
};

// Writes how long it lived.
class Stopwatch {
public:
    Stopwatch(Clock& clock, double& elapsed) : clock_(clock), elapsed_(elapsed), begin_(clock.seconds()) {}
    ~Stopwatch() { elapsed_ = clock_.seconds() - begin_; }
    Stopwatch(const Stopwatch&) = delete;
    Stopwatch& operator=(const Stopwatch&) = delete;

private:
    Clock& clock_;
    double& elapsed_;
    double begin_;
};

// Calls that warm up caches, buffers and clocks are not counted: at least so many and for so long. Then samples are
// taken until there are enough of them and the time is over, or the most of them.
struct SamplingRule {
    int warm_up_calls = 3;
    double warm_up_seconds = 0.2;
    int least_samples = 20;
    int most_samples = 1000;
    double seconds = 1;
};
std::vector<double> sample_times(Clock& clock, const SamplingRule& rule, const std::function<void()>& call);

// Several calls, [call][round]. Each warms up alone; then they take turns, every second round in the opposite order, so
// that whatever else the machine does hits all alike. One that is short comes once more before it counts, to find its
// data in the caches as it would alone. The rule is for each call: the time is over when all together have taken so
// many times as much.
std::vector<std::vector<double>> sample_times_in_turns(Clock& clock, const SamplingRule& rule,
                                                       const std::vector<std::function<void()>>& calls);

class MemoryMeter {
public:
    virtual ~MemoryMeter() = default;
    virtual int64_t used_bytes() = 0;
    virtual void begin_peak() {}  // what was freed is given back; peak_bytes() counts from here
    virtual int64_t peak_bytes() { return used_bytes(); }  // the most that was used since
};

// Memory that is resident, from /proc: of this process and of the processes that it has started, which is where Python
// models are.
class ProcessMemory : public MemoryMeter {
public:
    int64_t used_bytes() override;
    void begin_peak() override;
    int64_t peak_bytes() override;

private:
    bool has_peak_ = false;
};

// Readings of the memory in use, evenly spaced: more than 10 MB from the first to the last is a leak, and so is a
// trend: growth in more than half of the intervals, of 256 KiB or more in all. A buffer that is enlarged once or twice
// is neither.
struct MemoryGrowth {
    int64_t bytes = 0;
    bool is_trend = false;
};
inline constexpr int64_t kLeakBytes = 10'000'000;
MemoryGrowth memory_growth(const std::vector<int64_t>& readings);

}  // namespace mlff::bench
