// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include "core/threads.h"

using namespace mlff;

TEST_CASE("threads: every chunk is worked on exactly once") {
    CHECK(available_cores() >= 1);
    CHECK(ThreadTeam(0).size() == available_cores());
    for (const int size : {1, 2, 3, 8}) {
        ThreadTeam team(size);
        CHECK(team.size() == size);
        for (const int64_t chunk_count : {0, 1, 2, 7, 1000}) {
            CAPTURE(size);
            CAPTURE(chunk_count);
            std::vector<std::atomic<int>> visits(static_cast<size_t>(chunk_count));
            std::atomic<int> strangers{0};
            team.run(chunk_count, [&](int64_t chunk, int worker) {
                ++visits[static_cast<size_t>(chunk)];
                if (worker < 0 || worker >= size) ++strangers;
            });
            int wrong = 0;
            for (const auto& count : visits) wrong += count != 1;
            CHECK(wrong == 0);
            CHECK(strangers == 0);
        }
    }
}

TEST_CASE("threads: a worker has one chunk at a time") {
    ThreadTeam team(4);
    std::vector<std::atomic<int>> active(4);
    std::atomic<int> clashes{0};
    team.run(2000, [&](int64_t, int worker) {
        if (++active[static_cast<size_t>(worker)] != 1) ++clashes;
        std::this_thread::yield();
        --active[static_cast<size_t>(worker)];
    });
    CHECK(clashes == 0);
}

TEST_CASE("threads: what is thrown in a chunk arrives at the caller, and the team works on") {
    for (const int size : {1, 2, 5}) {
        CAPTURE(size);
        ThreadTeam team(size);
        for (int round = 0; round < 50; ++round) {
            const auto throws_at = [&](int64_t bad) {
                return [bad](int64_t chunk, int) {
                    if (chunk == bad) throw std::runtime_error("chunk");
                };
            };
            CHECK_THROWS_WITH_AS(team.run(20, throws_at(round % 20)), "chunk", std::runtime_error);
            CHECK_THROWS_AS(team.run(20, [](int64_t, int) { throw 7; }), int);
            std::atomic<int64_t> sum{0};
            team.run(100, [&](int64_t chunk, int) { sum += chunk; });
            CHECK(sum == 4950);
        }
    }
}

TEST_CASE("threads: many short jobs") {
    ThreadTeam team(3);
    int64_t total = 0;
    for (int job = 0; job < 5000; ++job) {
        std::atomic<int64_t> sum{0};
        team.run(3, [&](int64_t chunk, int) { sum += chunk + job; });
        total += sum;
    }
    CHECK(total == 5000 * 3 + 3 * (4999 * 5000 / 2));
}
