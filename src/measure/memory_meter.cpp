// SPDX-License-Identifier: MIT
#include "measure/memory_meter.h"

#include <dirent.h>
#include <fcntl.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string_view>

#include "core/error.h"
#include "gpu/runtime/gpu.h"

namespace mlff::bench {
namespace {

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

}  // namespace

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

int64_t GpuMemory::used_bytes() { return gpu_used_bytes(ordinal_); }

std::unique_ptr<MemoryMeter> make_memory_meter(const Device& device) {
    if (device.is_gpu()) return std::make_unique<GpuMemory>(gpu_ordinal(device));
    return std::make_unique<ProcessMemory>();
}

}  // namespace mlff::bench
