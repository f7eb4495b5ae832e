// SPDX-License-Identifier: MIT
#include "bench/measure.h"

#include <malloc.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <string>

#include "core/error.h"

namespace mlff::bench {
namespace {

constexpr int64_t kLeastTrend = int64_t{256} << 10;

// A line "VmHWM:   1234 kB" of /proc/self/status, in bytes; -1 if there is none.
int64_t status_bytes(const std::string& key) {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
        if (line.starts_with(key + ":")) return std::stoll(line.substr(key.size() + 1)) * 1024;
    return -1;
}

}  // namespace

double SteadyClock::seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

std::vector<double> sample_times(Clock& clock, const SamplingRule& rule, const std::function<void()>& call) {
    double spent = 0;
    for (int i = 0; i < rule.warm_up_calls || spent < rule.warm_up_seconds; ++i) {
        double elapsed = 0;
        {
            const Stopwatch watch(clock, elapsed);
            call();
        }
        spent += elapsed;
        if (!(elapsed > 0) && i >= rule.warm_up_calls) break;  // a clock too coarse for this call would never get there
    }
    std::vector<double> times;
    spent = 0;
    while (static_cast<int>(times.size()) < rule.least_samples || (spent < rule.seconds && static_cast<int>(times.size()) < rule.most_samples)) {
        double elapsed = 0;
        {
            const Stopwatch watch(clock, elapsed);
            call();
        }
        times.push_back(elapsed);
        spent += elapsed;
    }
    return times;
}

int64_t ProcessMemory::used_bytes() {
    const int64_t bytes = status_bytes("VmRSS");
    if (bytes < 0) fail(Status::file, "/proc/self/status: expected a line VmRSS; without it memory cannot be measured");
    return bytes;
}

void ProcessMemory::begin_peak() {
#ifdef __GLIBC__
    malloc_trim(0);
#endif
    std::ofstream refs("/proc/self/clear_refs");  // 5: the peak begins anew (proc(5))
    refs << "5" << std::flush;
    has_peak_ = refs.good();
}

// Where the peak cannot be asked for: what is used, for sessions keep their buffers.
int64_t ProcessMemory::peak_bytes() { return has_peak_ ? status_bytes("VmHWM") : used_bytes(); }

MemoryGrowth memory_growth(const std::vector<int64_t>& readings) {
    if (readings.size() < 2) fail(Status::argument, "growth of memory from ", readings.size(), " readings; at least 2 are needed");
    MemoryGrowth growth;
    growth.bytes = readings.back() - readings.front();
    size_t grown = 0;
    for (size_t i = 1; i < readings.size(); ++i) grown += readings[i] > readings[i - 1] ? 1 : 0;
    growth.is_trend = readings.size() > 4 && 2 * grown > readings.size() - 1 && growth.bytes >= kLeastTrend;
    return growth;
}

}  // namespace mlff::bench
