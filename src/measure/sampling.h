// SPDX-License-Identifier: MIT
// Times repeated calls. The clock is an interface, so that tests can replace it.
#pragma once

#include <functional>
#include <vector>

namespace mlff::bench {

class Clock {
public:
    virtual ~Clock() = default;
    virtual double seconds() = 0;  // since a fixed point in time; monotonic
};

class SteadyClock : public Clock {
public:
    double seconds() override;
};

// Writes its lifetime to a variable.
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

// Warm-up calls (for caches, buffers and clocks) are not counted: at least this many, for at least this long. Then
// samples are taken until there are enough and the time is over, or until the maximum number is reached.
struct SamplingRule {
    int warm_up_calls = 3;
    double warm_up_seconds = 0.2;
    int least_samples = 20;
    int most_samples = 1000;
    double seconds = 1;
};
std::vector<double> sample_times(Clock& clock, const SamplingRule& rule, const std::function<void()>& call);

// Samples several calls, [call][round]. Each warms up alone; then they take turns, in the opposite order every second
// round, so that disturbances affect all of them alike. A short call is made once more before it is timed, so that it
// finds its data in the caches as it would alone. The rule is per call: the total time is the sum over all calls.
std::vector<std::vector<double>> sample_times_in_turns(Clock& clock, const SamplingRule& rule,
                                                       const std::vector<std::function<void()>>& calls);

}  // namespace mlff::bench
