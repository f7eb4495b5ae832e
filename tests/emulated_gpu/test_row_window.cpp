// SPDX-License-Identifier: MIT
// Host memory that processes share, and rows that go from domain to domain through it, each domain in a process of its
// own. Copies of the emulated GPU are complete at once, so processes wait at random instead.
#include <doctest/doctest.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "core/error.h"
#include "gpu/engine/row_window.h"
#include "gpu/engine/shared_halo.h"
#include "gpu/engine/staged_halo.h"
#include "gpu/runtime/shared_allocation.h"

namespace {

using namespace mlff;
using namespace mlff::gpu;

// Runs action(0), action(1), ... in processes of their own. Returns how each ended: 0 if the action returned true.
std::vector<int> in_processes(int count, const std::function<bool(int)>& action) {
    std::vector<pid_t> children;
    for (int i = 0; i < count; ++i) {
        const pid_t child = fork();
        if (child == 0) {
            alarm(60);  // a domain that waits for ever
            int result = 1;
            try {
                result = action(i) ? 0 : 2;
            } catch (const std::exception& error) {
                std::fprintf(stderr, "process %d: %s\n", i, error.what());
            }
            _exit(result);
        }
        children.push_back(child);
    }
    std::vector<int> results;
    for (const pid_t child : children) {
        int status = -1;
        waitpid(child, &status, 0);
        results.push_back(status);
    }
    return results;
}

std::string message_of(const std::function<void()>& action) {
    try {
        action();
    } catch (const Error& error) {
        return error.what();
    }
    return "";
}

constexpr int kDomains = 4;
constexpr size_t kMailBytes = 8 << 20;

// Memory of all processes: mail from every domain, and a place to meet.
struct Post {
    pthread_barrier_t barrier;
    size_t row_bytes[kDomains];
    unsigned char mail[kDomains][kMailBytes];
};
Post* new_post(int count) {
    void* const memory =
        mmap(nullptr, sizeof(Post), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    REQUIRE(memory != MAP_FAILED);
    auto* const post = static_cast<Post*>(memory);
    pthread_barrierattr_t shared;
    pthread_barrierattr_init(&shared);
    pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&post->barrier, &shared, static_cast<unsigned>(count));
    return post;
}

// counts[i][j]: rows that domain i sends to domain j.
using Counts = std::vector<std::vector<int>>;

class PostedHalo : public HaloExchange {
public:
    PostedHalo(Post& post, int own) : post_(post), own_(static_cast<size_t>(own)) {}
    Halo halo(const Counts& counts) {
        counts_ = &counts;
        Halo result;
        size_t sent = 0;
        for (size_t other = 0; other < counts.size(); ++other) {
            sent += static_cast<size_t>(counts[own_][other]);
            result.received_count += counts[other][own_];
        }
        atoms_.assign(sent, 0);
        result.sent = atoms_;
        result.exchange = this;
        return result;
    }
    void exchange(const void* sent, void* received, size_t row_bytes) override {
        move(*counts_, sent, received, row_bytes);
    }
    bool can_return() const override { return true; }
    void give_back(const void* given, void* returned, size_t row_bytes) override {
        Counts transposed = *counts_;
        for (size_t i = 0; i < transposed.size(); ++i)
            for (size_t j = 0; j < transposed.size(); ++j) transposed[i][j] = (*counts_)[j][i];
        move(transposed, given, returned, row_bytes);
    }

private:
    void move(const Counts& counts, const void* sent, void* received, size_t row_bytes) {
        size_t sent_count = 0;
        for (const int count : counts[own_]) sent_count += static_cast<size_t>(count);
        if (sent_count * row_bytes > kMailBytes) fail(Status::internal, "the mail is too long");
        std::memcpy(post_.mail[own_], sent, sent_count * row_bytes);
        post_.row_bytes[own_] = row_bytes;
        pthread_barrier_wait(&post_.barrier);
        auto* to = static_cast<unsigned char*>(received);
        for (size_t other = 0; other < counts.size(); ++other) {
            if (post_.row_bytes[other] != row_bytes) fail(Status::internal, "rows of two domains differ in size");
            size_t before = 0;
            for (size_t k = 0; k < own_; ++k) before += static_cast<size_t>(counts[other][k]);
            const size_t bytes = static_cast<size_t>(counts[other][own_]) * row_bytes;
            std::memcpy(to, post_.mail[other] + before * row_bytes, bytes);
            to += bytes;
        }
        pthread_barrier_wait(&post_.barrier);
    }

    Post& post_;
    size_t own_;
    const Counts* counts_ = nullptr;
    std::vector<int32_t> atoms_;
};

// The first word of a row says where it comes from and when, as does the last.
uint32_t mark(int from, int to, int row, int turn) {
    return static_cast<uint32_t>(((from * kDomains + to) * 65536 + row) * 64 + turn);
}

// All rows of some turns arrive, forth and, in every third turn, back.
bool exchange_rows(PostedHalo& halo, RowWindow& window, const Counts& counts, int own, int64_t row_bytes) {
    const auto count = counts.size(), self = static_cast<size_t>(own);
    std::minstd_rand random(static_cast<unsigned>(own + 1));
    window.set(halo.halo(counts), row_bytes);
    const auto words = static_cast<size_t>(row_bytes / 4);
    for (int turn = 0; turn < 9; ++turn) {
        const bool is_back = turn % 3 == 2;
        std::vector<uint32_t> sent, expected;
        for (size_t other = 0; other < count; ++other) {
            const int to = is_back ? counts[other][self] : counts[self][other],
                      from = is_back ? counts[self][other] : counts[other][self];
            for (int row = 0; row < to; ++row) {
                sent.resize(sent.size() + words, 0);
                sent[sent.size() - words] = sent.back() = mark(own, static_cast<int>(other), row, turn);
            }
            for (int row = 0; row < from; ++row) {
                expected.resize(expected.size() + words, 0);
                expected[expected.size() - words] = expected.back() = mark(static_cast<int>(other), own, row, turn);
            }
        }
        std::vector<uint32_t> received(expected.size(), 0xffffffff);
        if (random() % 3 == 0) usleep(static_cast<useconds_t>(random() % 3000));
        const auto* from = reinterpret_cast<const unsigned char*>(sent.data());
        auto* to = reinterpret_cast<unsigned char*>(received.data());
        if (is_back)
            window.give_back(from, to, row_bytes, nullptr);
        else
            window.exchange(from, to, row_bytes, nullptr);
        if (received != expected) return false;
    }
    return true;
}

// Ghosts of a domain that sends to itself: some are images, some are received, several times.
struct Loop : HaloExchange {
    explicit Loop(size_t row_count) : rows(row_count) {}
    void exchange(const void* sent, void* received, size_t row_bytes) override {
        std::memcpy(received, sent, rows * row_bytes);
    }
    bool can_return() const override { return true; }
    void give_back(const void* given, void* returned, size_t row_bytes) override {
        std::memcpy(returned, given, rows * row_bytes);
    }
    size_t rows;
};

}  // namespace

TEST_CASE("another process maps host memory, and refuses what is not there") {
    const SharedAllocation own(SharedIn::host, 3 << 20, "a test");
    std::memset(own.data(), 7, static_cast<size_t>(own.bytes()));
    const GpuAddress address = own.address();
    CHECK(OpenedAllocations().open(address) == own.data());  // in the same process, where it is
    const auto ends = in_processes(1, [&](int) {
        OpenedAllocations opened;
        const unsigned char* const data = opened.open(address);
        if (data == own.data() || data[0] != 7 || data[own.bytes() - 1] != 7 || opened.open(address) != data)
            return false;
        const_cast<unsigned char*>(data)[1] = 8;
        GpuAddress other = address;
        ++other.token;
        if (message_of([&] { opened.open(other); }) !=
            "cannot read host memory of another process: the token was not found in it")
            return false;
        other = address;
        ++other.machine;
        if (message_of([&] { opened.open(other); }) !=
            "cannot read host memory of another process: it is on another machine")
            return false;
        HostWindow::Place place;
        std::memcpy(&place, address.handle, sizeof place);
        ++place.bytes;
        if (message_of([&] { HostWindow{place}; }) != "cannot map host memory of another process: it has another size")
            return false;
        place.file = 0;  // some other file
        return message_of([&] { HostWindow{place}; }) ==
               "cannot map host memory of another process: this process does not see it";
    });
    CHECK(ends == std::vector<int>{0});
    CHECK(own.data()[1] == 8);  // it is the same memory
}

TEST_CASE("more host memory than there is, is refused") {
    CHECK(message_of([] {
              SharedAllocation(SharedIn::host, int64_t{1} << 50, "the ghosts");
          }).find("of shared memory for the ghosts") != std::string::npos);
}

TEST_CASE("rows go through memory that processes share") {
    for (const int count : {2, 4}) {
        CAPTURE(count);
        Post* const post = new_post(count);
        // Many rows, in several chunks; then more, for which the memory grows; then few, and domains without any.
        const auto filled = [&](int rows) {
            Counts counts(static_cast<size_t>(count), std::vector<int>(static_cast<size_t>(count), rows));
            for (size_t i = 0; i < counts.size(); ++i) counts[i][i] = 0, counts[i][(i + 1) % counts.size()] += 100;
            return counts;
        };
        Counts one_way(static_cast<size_t>(count), std::vector<int>(static_cast<size_t>(count), 0));
        one_way[0][1] = 700;
        const auto ends = in_processes(count, [&](int own) {
            PostedHalo halo(*post, own);
            RowWindow window;
            if (own == 1)  // has counted turns that others have not
                for (int turn = 0; turn < 3; ++turn) window.rows().next_turn();
            return exchange_rows(halo, window, filled(1500), own, 2560) &&
                   exchange_rows(halo, window, filled(4000), own, 2560) &&
                   exchange_rows(halo, window, one_way, own, 2048) && exchange_rows(halo, window, filled(3), own, 4) &&
                   exchange_rows(halo, window, filled(0), own, 8192);
        });
        CHECK(ends == std::vector<int>(static_cast<size_t>(count), 0));
        munmap(post, sizeof(Post));
    }
}

TEST_CASE("a domain that fails ends those that wait for its rows") {
    Post* const post = new_post(2);
    const Counts counts = {{0, 5}, {5, 0}};
    const auto ends = in_processes(2, [&](int own) {
        PostedHalo halo(*post, own);
        RowWindow window;
        window.set(halo.halo(counts), 16);
        unsigned char sent[80] = {}, received[80] = {};
        if (own == 1) {
            window.rows().meet();
            std::atomic_ref(window.rows().own_head().failed_turn).store(window.rows().turn_number() + 1);
            window.rows().next_turn();
            window.set(halo.halo(counts), 16);  // goes on before the other has noticed
            window.exchange(sent, received, 16, nullptr);
            return true;
        }
        const std::string message = message_of([&] { window.exchange(sent, received, 16, nullptr); });
        window.set(halo.halo(counts), 16);
        window.exchange(sent, received, 16, nullptr);
        return message == "another domain failed while it exchanged rows of atoms";
    });
    munmap(post, sizeof(Post));
    CHECK(ends == std::vector<int>{0, 0});
}

TEST_CASE("a GPU tries whether it reads what others have written") {
    for (const SharedIn where : {SharedIn::gpu, SharedIn::host}) {
        SharedRows one(where), other(where);
        const GpuAddress address = one.address();
        CHECK(address == one.address());
        CHECK(address.is_host == (where == SharedIn::host ? 1 : 0));
        CHECK_NOTHROW(other.reach(address, nullptr));
    }
}

TEST_CASE("rows of ghosts are added to those of the atoms that they copy") {
    constexpr int64_t kOwned = 5, kRowSize = 12, kRowBytes = kRowSize * 4;
    const std::vector<int32_t> sent = {3, 1, 3, 0}, source = {2, -1, 0, 2, 1, -4, -1, 3, 2};
    const auto ghosts = static_cast<int64_t>(source.size());
    std::vector<float> rows(static_cast<size_t>((kOwned + ghosts) * kRowSize));
    std::minstd_rand random(3);
    for (float& x : rows) x = static_cast<float>(random() % 4096) / 16.0f;  // sums are exact
    std::vector<float> expected = rows;
    for (size_t ghost = 0; ghost < source.size(); ++ghost) {
        const auto owner =
            static_cast<size_t>(source[ghost] < 0 ? -1 - source[ghost] : sent[static_cast<size_t>(source[ghost])]);
        for (size_t k = 0; k < kRowSize; ++k)
            expected[owner * kRowSize + k] += rows[(static_cast<size_t>(kOwned) + ghost) * kRowSize + k];
    }
    Loop loop(sent.size());
    for (const RowTransport transport :
         {RowTransport::host, RowTransport::device, RowTransport::window, RowTransport::shared}) {
        CAPTURE(static_cast<int>(transport));
        StagedHalo staged;
        SharedHalo shared;
        BufferList list;
        staged.list_buffers(list, {4, 4}, kRowBytes);
        list.reserve(1);
        const Halo halo = {sent, 4, source, &loop, transport};
        StepHalo* used = &staged;
        if (transport == RowTransport::shared)
            shared.set(halo, kOwned, kRowBytes, 7, nullptr), used = &shared;
        else
            staged.set(halo, kOwned, kRowBytes, 7, nullptr);
        CHECK(used->can_add_back());
        for (int repeat = 0; repeat < 3; ++repeat) {
            std::vector<float> found = rows;
            used->add_back(found.data(), kRowSize, nullptr);
            CHECK(found == expected);
            used->fill(found.data(), kRowBytes, nullptr);  // the two take turns
            CHECK(std::equal(found.begin(), found.begin() + kOwned * kRowSize, expected.begin()));
        }
    }
}
