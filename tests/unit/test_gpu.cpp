// SPDX-License-Identifier: MIT
// GPU discovery. With MLFF_REQUIRE_GPU set (scripts/test --gpu) a GPU must be found and run a kernel of ours.
#include <doctest/doctest.h>

#include <cstdlib>

#include <chrono>
#include <thread>

#include "core/error.h"
#include "gpu/runtime/event_timer.h"
#include "gpu/runtime/gpu.h"

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
    }
}
