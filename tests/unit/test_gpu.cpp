// SPDX-License-Identifier: MIT
// GPU discovery. With MLFF_REQUIRE_GPU set (scripts/test --gpu) a GPU must be found and run a kernel of ours.
#include <doctest/doctest.h>

#include <cstdlib>

#include <chrono>
#include <thread>

#include "core/error.h"
#include "gpu/runtime/event_timer.h"
#include "gpu/runtime/gpu.h"
#include "gpu/runtime/work_stream.h"

using namespace mlff;

TEST_CASE("an event timer measures what happens between its moments") {
    EventTimer timer;
    for (const int milliseconds : {30, 5}) {  // and starts anew
        const auto begin = std::chrono::steady_clock::now();
        {
            const EventTimer::Span span(timer);
            std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
        }
        const double around = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        CHECK(timer.seconds() >= 1e-3 * milliseconds);
        CHECK(timer.seconds() <= around);
    }
    if (gpu_inventory().gpus.empty()) {
        CHECK_THROWS_AS(EventTimer(0, nullptr), Error);
        return;
    }
    const auto begin = std::chrono::steady_clock::now();
    EventTimer of_gpu(gpu_inventory().gpus.front().ordinal, nullptr);
    of_gpu.start();
    gpu_used_bytes(gpu_inventory().gpus.front().ordinal);
    of_gpu.stop();
    CHECK(of_gpu.seconds() > 0);
    CHECK(of_gpu.seconds() <= std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
}

TEST_CASE("GPUs are found, or there is a reason why not") {
    const GpuInventory& inventory = gpu_inventory();
    CHECK(inventory.gpus.empty() != inventory.why_none.empty());
    if (std::getenv("MLFF_REQUIRE_GPU")) REQUIRE(!inventory.gpus.empty());
    for (const Gpu& gpu : inventory.gpus) {
        CHECK(!gpu.name.empty());
        CHECK(gpu.compute_capability >= 50);
        CHECK(gpu.memory_bytes > (int64_t{1} << 28));
        CHECK(inventory.runtime_version > 0);
        CHECK(inventory.driver_version > 0);
        CHECK(gpu.multiprocessor_count > 0);
        CHECK(gpu.l2_cache_bytes > 0);
        CHECK(gpu.shared_memory_per_block_bytes <= gpu.shared_memory_per_multiprocessor_bytes);
        const GpuMemoryState state = gpu_memory_state(gpu.ordinal);
        CHECK(state.total > (int64_t{1} << 28));
        CHECK((state.free > 0 && state.used() > 0));
    }
}

TEST_CASE("the bandwidth of memory is two transfers in a cycle, where clock and bus are known") {
    Gpu gpu;
    gpu.memory_bus_bits = 256;
    CHECK(gpu.memory_bandwidth() == 0);
    gpu.memory_clock_kHz = 1'000'000;
    CHECK(gpu.memory_bandwidth() == 64e9);
}

TEST_CASE("devices by name") {
    CHECK(device_named("cpu") == Device{});
    CHECK(device_named("reference") == Device{Device::Kind::reference});
    CHECK(device_named("auto").is_gpu() != gpu_inventory().gpus.empty());
    CHECK_THROWS_WITH_AS(device_named("toaster"),
                         "device 'toaster' is none of auto, cpu, reference, cuda, cuda:0, cuda:1, ...", Error);
    CHECK_THROWS_AS(device_named("cuda:1000"), Error);
}

TEST_CASE("a stream of work on each kind of device") {
    const auto on_cpu = make_work_stream({});
    CHECK(on_cpu->handle() == nullptr);
    on_cpu->synchronize();
    if (gpu_inventory().gpus.empty()) {
        CHECK_THROWS_AS(make_work_stream({Device::Kind::gpu}), Error);
        return;
    }
    const auto on_gpu = make_work_stream({Device::Kind::gpu}), other = make_work_stream({Device::Kind::gpu});
    CHECK((on_gpu->handle() != nullptr && on_gpu->handle() != other->handle()));
    on_gpu->synchronize();
    gpu_synchronize(gpu_inventory().gpus.front().ordinal);
}
