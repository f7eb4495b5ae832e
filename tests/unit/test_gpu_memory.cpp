// SPDX-License-Identifier: MIT
// The arithmetic of memory on the GPU; needs none.
#include <doctest/doctest.h>

#include <string>

#include "core/error.h"
#include "gpu/engine/buffer_list.h"
#include "gpu/engine/memory_need.h"

using namespace mlff;
using namespace mlff::gpu;

namespace {

template <int Bytes>
struct FakeBuffer {
    static constexpr int64_t kItemBytes = Bytes;
    int64_t count = 0;
    int allocations = 0;
    bool is_full = false;

    int64_t capacity() const { return count; }
    void reserve_discard(int64_t wanted, const char* purpose) {
        count = 0;
        if (is_full) fail(Status::memory, purpose);
        count = wanted;
        ++allocations;
    }
    void release() { count = 0; }
};

std::string refusal(const MemoryNeed& need, const MemoryThere& there) {
    try {
        check_memory(need, there);
    } catch (const Error& error) {
        CHECK(error.status() == Status::memory);
        return error.what();
    }
    return "";
}

}  // namespace

TEST_CASE("bytes are those of the largest use of each buffer, and memory is taken from the same list") {
    FakeBuffer<8> positions;
    FakeBuffer<4> work, edges;
    edges.count = 1000;
    BufferList list;
    list.add(positions, 30, "atoms");
    list.add(work, 10, "atoms");
    list.add(work, 200, "atoms");
    list.add(work, 50, "atoms");
    list.add(edges, 100, "edges");
    CHECK(list.needed_bytes() == 30 * 8 + 200 * 4 + 100 * 4);
    CHECK(list.held_bytes() == 1000 * 4);
    CHECK(list.bytes_afterwards() == 30 * 8 + 200 * 4 + 1000 * 4);
    CHECK_FALSE(list.is_reserved());
    list.reserve(1.125);
    CHECK(list.is_reserved());
    CHECK(positions.count == 33);
    CHECK(work.count == 225);
    CHECK(edges.count == 1000);
    CHECK(edges.allocations == 0);
    CHECK(list.held_bytes() == list.bytes_afterwards());
    list.release();
    CHECK(list.held_bytes() == 0);
    CHECK(edges.count == 0);
    list.reserve(1.0);
    CHECK(work.count == 200);
}

TEST_CASE("a list that could not be reserved can be tried again") {
    FakeBuffer<8> first, second;
    second.is_full = true;
    BufferList list;
    list.add(first, 5, "atoms");
    list.add(second, 5, "edges");
    CHECK_THROWS_AS(list.reserve(1.0), Error);
    CHECK_FALSE(list.is_reserved());
    second.is_full = false;
    list.reserve(1.0);
    CHECK(list.is_reserved());
    CHECK(first.allocations == 1);
}

TEST_CASE("a system that does not fit is told how much it needs and what would fit") {
    CHECK(refusal({500'000, 42'000'000, 31'200'000'000}, {20'100'000'000, false}) ==
          "needs 31.2 GB for 500,000 atoms with 42 M edges; the GPU has 20.1 GB free; about 320,000 atoms of this "
          "density would fit");
    CHECK(refusal({1000, 64'000, 5'000'000}, {1'000'000, true}) ==
          "needs 5.0 MB for 1,000 atoms with 64,000 edges; the limit of the session is 1.0 MB; about 200 atoms of this "
          "density would fit");
    CHECK(refusal({70, 0, 5'000'000}, {1'000'000, true}) ==
          "needs more than 5.0 MB for 70 atoms; the limit of the session is 1.0 MB; less than 14 atoms would fit");
    CHECK(refusal({70, 10, 5'000'000}, {-3, false}).find("0 atoms") != std::string::npos);
    CHECK(refusal({70, 10, 5'000'000}, {5'000'000, false}).empty());
}
