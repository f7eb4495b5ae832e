// SPDX-License-Identifier: MIT
// Devices, their memory, streams and timers.
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <string_view>

#include "api/guard.h"
#include "api/handles.h"
#include "core/threads.h"
#include "cpu_kernels/kernel_table.h"
#include "gpu/runtime/gpu.h"
#include "gpu/runtime/host_facts.h"
#include "measure/memory_meter.h"

using mlff::fail;
using mlff::Status;
using namespace mlff::api;

namespace {

// Ends before the first field that later versions have appended.
constexpr size_t kFirstDeviceInfo = offsetof(mlff_device_info, l2_cache_bytes);

template <size_t Size>
void copy_text(std::string_view from, char (&to)[Size]) {
    to[from.copy(to, Size - 1)] = '\0';
}

mlff_device_info info_of(const mlff::Gpu& gpu) {
    mlff_device_info info{};
    copy_text(gpu.name, info.name);
    info.compute_capability = gpu.compute_capability;
    info.memory_bytes = gpu.memory_bytes;
    info.l2_cache_bytes = gpu.l2_cache_bytes;
    info.shared_memory_per_block_bytes = gpu.shared_memory_per_block_bytes;
    info.shared_memory_per_multiprocessor_bytes = gpu.shared_memory_per_multiprocessor_bytes;
    info.memory_bandwidth = gpu.memory_bandwidth();
    info.multiprocessor_count = gpu.multiprocessor_count;
    info.clock_kHz = gpu.clock_kHz;
    info.memory_clock_kHz = gpu.memory_clock_kHz;
    info.memory_bus_bits = gpu.memory_bus_bits;
    info.cuda_runtime_version = mlff::gpu_inventory().runtime_version;
    info.cuda_driver_version = mlff::gpu_inventory().driver_version;
    return info;
}

mlff_device_info info_of_cpu() {
    mlff_device_info info{};
    copy_text(mlff::read_host_facts().processor_id, info.name);
    copy_text(mlff::kernels::choose_kernels<float>().name, info.kernels);
    info.memory_bytes = mlff::whole_memory();
#ifdef _SC_LEVEL2_CACHE_SIZE
    info.l2_cache_bytes = std::max(0L, sysconf(_SC_LEVEL2_CACHE_SIZE));
#endif
    info.core_count = static_cast<int32_t>(mlff::available_cores());
    int32_t clock_kHz = 0;
    if (std::ifstream("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq") >> clock_kHz) info.clock_kHz = clock_kHz;
    return info;
}

const mlff::Gpu& gpu_with_index(int32_t index) {
    const mlff::GpuInventory& inventory = mlff::gpu_inventory();
    if (index < 0 || static_cast<size_t>(index) >= inventory.gpus.size())
        fail(Status::device, "there is no GPU ", index, ": ",
             inventory.gpus.empty() ? inventory.why_none : "the index is too large");
    return inventory.gpus[static_cast<size_t>(index)];
}

// Writes as much as the caller's version of the struct has.
void write_info(mlff_device_info found, mlff_device_info* info) {
    found.struct_size = info->struct_size;
    std::memcpy(info, &found, std::min(info->struct_size, sizeof found));
}

int64_t or_unknown(int64_t bytes) { return bytes > 0 ? bytes : -1; }

}  // namespace

int32_t mlff_device_count(void) {
    int32_t count = 0;
    guarded([&] { count = static_cast<int32_t>(mlff::gpu_inventory().gpus.size()); });
    return count;
}

mlff_status mlff_device_get_info(int32_t index, mlff_device_info* info) {
    return guarded([&] {
        require(info, "info");
        require_size(info->struct_size, kFirstDeviceInfo, "mlff_device_info");
        write_info(info_of(gpu_with_index(index)), info);
    });
}

mlff_status mlff_device_describe(const char* device, mlff_device_info* info) {
    return guarded([&] {
        require(info, "info");
        require_size(info->struct_size, kFirstDeviceInfo, "mlff_device_info");
        const mlff::Device found = named_device(device);
        write_info(found.is_gpu() ? info_of(gpu_with_index(found.index)) : info_of_cpu(), info);
    });
}

const char* mlff_device_why_none(void) {
    const char* reason = "";
    guarded([&] { reason = mlff::gpu_inventory().why_none.c_str(); });
    return reason;
}

mlff_status mlff_device_get_memory(const char* device, mlff_device_memory* memory) {
    return guarded([&] {
        require(memory, "memory");
        require_size(memory->struct_size, sizeof(mlff_device_memory), "mlff_device_memory");
        const mlff::Device found = named_device(device);
        if (found.is_gpu()) {
            const mlff::GpuMemoryState state = mlff::gpu_memory_state(mlff::gpu_ordinal(found));
            memory->total_bytes = state.total;
            memory->free_bytes = state.free;
            memory->process_bytes = -1;
        } else {
            const int64_t process_bytes = mlff::bench::ProcessMemory().used_bytes();
            memory->total_bytes = or_unknown(mlff::whole_memory());
            memory->free_bytes = or_unknown(mlff::available_memory());
            memory->process_bytes = process_bytes;
        }
        const bool is_known = memory->total_bytes >= 0 && memory->free_bytes >= 0;
        memory->used_bytes = is_known ? std::max<int64_t>(0, memory->total_bytes - memory->free_bytes) : -1;
    });
}

mlff_status mlff_device_synchronize(const char* device) {
    return guarded([&] {
        const mlff::Device found = named_device(device);
        if (found.is_gpu()) mlff::gpu_synchronize(mlff::gpu_ordinal(found));
    });
}

mlff_status mlff_stream_create(const char* device, mlff_stream** stream) {
    return guarded([&] {
        require(stream, "stream");
        *stream = nullptr;
        *stream = new mlff_stream{mlff::make_work_stream(named_device(device))};
    });
}

void mlff_stream_free(mlff_stream* stream) { delete stream; }

void* mlff_stream_handle(const mlff_stream* stream) { return stream ? stream->stream->handle() : nullptr; }

mlff_status mlff_stream_synchronize(mlff_stream* stream) {
    return guarded([&] {
        require(stream, "stream");
        stream->stream->synchronize();
    });
}

mlff_status mlff_timer_create(const char* device, void* stream, mlff_timer** timer) {
    return guarded([&] {
        require(timer, "timer");
        *timer = nullptr;
        const mlff::Device found = named_device(device);
        if (!found.is_gpu() && stream)
            fail(Status::argument, "a timer of device '", device, "' was given a stream, and only GPUs have streams");
        auto made = std::make_unique<mlff_timer>();
        made->timer = found.is_gpu() ? std::make_unique<mlff::EventTimer>(mlff::gpu_ordinal(found), stream)
                                     : std::make_unique<mlff::EventTimer>();
        *timer = made.release();
    });
}

void mlff_timer_free(mlff_timer* timer) { delete timer; }

mlff_status mlff_timer_start(mlff_timer* timer) {
    return guarded([&] {
        require(timer, "timer");
        timer->state = mlff_timer::State::started;
        timer->timer->start();
    });
}

mlff_status mlff_timer_stop(mlff_timer* timer) {
    return guarded([&] {
        require(timer, "timer");
        if (timer->state != mlff_timer::State::started) fail(Status::argument, "the timer was not started");
        timer->timer->stop();
        timer->state = mlff_timer::State::stopped;
    });
}

mlff_status mlff_timer_get_seconds(const mlff_timer* timer, double* seconds) {
    return guarded([&] {
        require(timer, "timer");
        require(seconds, "seconds");
        if (timer->state != mlff_timer::State::stopped) fail(Status::argument, "the timer was not started and stopped");
        *seconds = timer->timer->seconds();
    });
}
