// SPDX-License-Identifier: MIT
// GPU discovery. With MLFF_REQUIRE_GPU set (scripts/test --gpu) a GPU must be found and run a kernel of ours.
#include <doctest/doctest.h>

#include <cstdlib>

#include "device/gpu.h"

using namespace mlff;

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
