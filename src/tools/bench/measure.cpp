// SPDX-License-Identifier: MIT
#include "tools/bench/measure.h"

#include <dirent.h>
#include <fcntl.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string_view>

#include "core/error.h"

namespace mlff::bench {
namespace {

constexpr int64_t kLeastTrend = int64_t{256} << 10;
constexpr double kShortCall = 0.02;  // seconds; the cache state left by other calls does not matter for longer calls

// The beginning of a file in /proc. Allocates no memory, because memory is being measured. "" if there is no such file.
struct ProcText {
    explicit ProcText(const char* path) {
        const int file = open(path, O_RDONLY | O_CLOEXEC);
        if (file < 0) return;
        for (ssize_t count = 1;
             count > 0 && length<sizeof text - 1; length += count> 0 ? static_cast<size_t>(count) : 0)
            count = read(file, text + length, sizeof text - 1 - length);
        close(file);
        text[length] = 0;
    }
    std::string_view view() const { return {text, length}; }

    char text[8192] = {};
    size_t length = 0;
};

// A line "VmHWM:   1234 kB" of /proc/PROCESS/status, in bytes; -1 if there is none.
int64_t status_bytes(const char* process, std::string_view key) {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%s/status", process);
    const ProcText status(path);
    const size_t at = status.view().find(key);
    return at == std::string_view::npos ? -1 : std::strtoll(status.text + at + key.size(), nullptr, 10) * 1024;
}

// Calls `visit` with the id, as text, of each child process (but not of their children).
template <class Visit>
void for_each_child(const Visit& visit) {
    DIR* folder = opendir("/proc");
    if (!folder) return;
    while (const dirent* entry = readdir(folder)) {
        const std::string_view name = entry->d_name;
        if (name.size() > 20 || name.find_first_not_of("0123456789") != std::string_view::npos) continue;
        char path[64];
        std::snprintf(path, sizeof path, "/proc/%.20s/stat", entry->d_name);
        const ProcText stat(path);  // number (program) state parent ...; the program's name may have any letters
        const size_t end = stat.view().rfind(") ");
        if (end != std::string_view::npos && end + 4 < stat.length &&
            std::strtol(stat.text + end + 4, nullptr, 10) == getpid())
            visit(entry->d_name);
    }
    closedir(folder);
}

// Of this process and its children.
int64_t sum_of_status_bytes(std::string_view key) {
    int64_t bytes = status_bytes("self", key);
    if (bytes < 0)
        fail(Status::file, "/proc/self/status: expected a line ", key, " without which memory cannot be measured");
    for_each_child([&](const char* process) { bytes += std::max<int64_t>(0, status_bytes(process, key)); });
    return bytes;
}

bool clear_peak(const char* process) {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%s/clear_refs", process);
    std::ofstream refs(path);
    refs << "5" << std::flush;  // the peak begins anew (proc(5))
    return refs.good();
}

double time_of(Clock& clock, const std::function<void()>& call) {
    double elapsed = 0;
    {
        const Stopwatch watch(clock, elapsed);
        call();
    }
    return elapsed;
}

// How long the last of the calls took; 0 if there was none.
double warm_up(Clock& clock, const SamplingRule& rule, const std::function<void()>& call) {
    double spent = 0, elapsed = 0;
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

int64_t ProcessMemory::used_bytes() { return sum_of_status_bytes("VmRSS:"); }

void ProcessMemory::begin_peak() {
#ifdef __GLIBC__
    malloc_trim(0);
#endif
    has_peak_ = clear_peak("self");
    for_each_child(clear_peak);
}

// If the peak is not available: the memory in use, because sessions keep their buffers.
int64_t ProcessMemory::peak_bytes() { return has_peak_ ? sum_of_status_bytes("VmHWM:") : used_bytes(); }

MemoryGrowth memory_growth(const std::vector<int64_t>& readings) {
    if (readings.size() < 2) fail(Status::argument, "memory growth needs at least 2 readings, found ", readings.size());
    MemoryGrowth growth;
    growth.bytes = readings.back() - readings.front();
    size_t grown = 0;
    for (size_t i = 1; i < readings.size(); ++i) grown += readings[i] > readings[i - 1] ? 1 : 0;
    growth.is_trend = readings.size() > 4 && 2 * grown > readings.size() - 1 && growth.bytes >= kLeastTrend;
    return growth;
}

}  // namespace mlff::bench
