// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include "equivariant/gpu/edge_chunks.h"

using mlff::equivariant::gpu::plan_edge_chunks;

TEST_CASE("chunks of edges cover all, are whole tiles, and fit") {
    for (const int64_t edges : {0, 1, 7, 8, 9, 63, 64, 65, 1000, 123457})
        for (const int64_t most : {8, 9, 16, 100, 4096, 1 << 20}) {
            CAPTURE(edges);
            CAPTURE(most);
            const auto [count, size] = plan_edge_chunks(edges, most, 8);
            CHECK(count >= 1);
            CHECK(size >= 8);
            CHECK(size % 8 == 0);
            CHECK(size <= most);
            CHECK(count * size >= edges);
            CHECK((count - 1) * (most / 8 * 8) < std::max<int64_t>(edges, 1));  // no more chunks than needed
        }
}

TEST_CASE("scratch memory that holds no tile of edges is an error of ours, not a division by zero") {
    CHECK_THROWS_AS(plan_edge_chunks(100, 7, 8), mlff::Error);
    CHECK_THROWS_AS(plan_edge_chunks(100, 0, 8), mlff::Error);
}
