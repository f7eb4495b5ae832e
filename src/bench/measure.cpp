// SPDX-License-Identifier: MIT
#include "bench/measure.h"

#include <fcntl.h>
#include <malloc.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string_view>

#include "core/error.h"

namespace mlff::bench {
namespace {

constexpr int64_t kLeastTrend = int64_t{256} << 10;

// A line "VmHWM:   1234 kB" of /proc/self/status, in bytes; -1 if there is none. Takes no memory itself, which would be measured.
int64_t status_bytes(std::string_view key) {
    const int file = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    if (file < 0) return -1;
    char text[8192];
    size_t length = 0;
    for (ssize_t count = 1; count > 0 && length < sizeof text - 1; length += count > 0 ? static_cast<size_t>(count) : 0) count = read(file, text + length, sizeof text - 1 - length);
    close(file);
    text[length] = 0;
    const size_t at = std::string_view(text, length).find(key);
    return at == std::string_view::npos ? -1 : std::strtoll(text + at + key.size(), nullptr, 10) * 1024;
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
    const int64_t bytes = status_bytes("VmRSS:");
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
int64_t ProcessMemory::peak_bytes() { return has_peak_ ? status_bytes("VmHWM:") : used_bytes(); }

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
