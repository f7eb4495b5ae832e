// SPDX-License-Identifier: MIT
// Memory in the phases of a run: loading, creating a session, the first call, later calls.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tools/bench/measure.h"

namespace mlff::bench {

class MemoryMonitor {
public:
    struct Phase {
        const char* name = "";
        int64_t before = 0, after = 0, peak = 0;  // bytes in use
        int64_t kept() const { return after - before; }
    };

    explicit MemoryMonitor(MemoryMeter& meter) : meter_(meter) { phases_.reserve(8); }

    // Ends the previous phase.
    void begin(const char* name) {
        end();
        meter_.begin_peak();
        const int64_t used = meter_.used_bytes();
        phases_.push_back({name, used, used, used});
        is_open_ = true;
    }
    void end() {
        if (!is_open_) return;
        Phase& phase = phases_.back();
        phase.after = meter_.used_bytes();
        phase.peak = std::max({phase.before, phase.after, meter_.peak_bytes()});
        is_open_ = false;
    }

    const std::vector<Phase>& phases() const { return phases_; }
    // The maximum over all phases, minus the memory in use at the beginning.
    int64_t most_bytes() const {
        int64_t most = 0;
        for (const Phase& phase : phases_) most = std::max(most, phase.peak - phases_.front().before);
        return most;
    }

private:
    MemoryMeter& meter_;
    std::vector<Phase> phases_;
    bool is_open_ = false;
};

}  // namespace mlff::bench
