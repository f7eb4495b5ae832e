// SPDX-License-Identifier: MIT
#include "measure/sampling.h"

#include <chrono>
#include <limits>

namespace mlff::bench {
namespace {

constexpr double kShortCall = 0.02;  // seconds; the cache state left by other calls does not matter for longer calls

double time_of(Clock& clock, const std::function<void()>& call) {
    double elapsed = 0;
    {
        const Stopwatch watch(clock, elapsed);
        call();
    }
    return elapsed;
}

// How long the last of the calls took; infinity if there was none.
double warm_up(Clock& clock, const SamplingRule& rule, const std::function<void()>& call) {
    double spent = 0, elapsed = std::numeric_limits<double>::infinity();
    for (int i = 0; i < rule.warm_up_calls || spent < rule.warm_up_seconds; ++i) {
        elapsed = time_of(clock, call);
        spent += elapsed;
        if (!(elapsed > 0) && i >= rule.warm_up_calls) break;  // the clock is too coarse for this call
    }
    return elapsed;
}

}  // namespace

double SteadyClock::seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::vector<double> sample_times(Clock& clock, const SamplingRule& rule, const std::function<void()>& call) {
    return sample_times_in_turns(clock, rule, {call}).front();
}

std::vector<std::vector<double>> sample_times_in_turns(Clock& clock, const SamplingRule& rule,
                                                       const std::vector<std::function<void()>>& calls) {
    std::vector<bool> comes_twice;
    for (const auto& call : calls) comes_twice.push_back(warm_up(clock, rule, call) < kShortCall && calls.size() > 1);
    std::vector<std::vector<double>> times(calls.size());
    double spent = 0;
    for (int round = 0; round < rule.least_samples ||
                        (spent < rule.seconds * static_cast<double>(calls.size()) && round < rule.most_samples);
         ++round)
        for (size_t turn = 0; turn < calls.size(); ++turn) {
            const size_t i = round % 2 == 0 ? turn : calls.size() - 1 - turn;
            if (comes_twice[i]) calls[i]();
            times[i].push_back(time_of(clock, calls[i]));
            spent += times[i].back();
        }
    return times;
}

}  // namespace mlff::bench
