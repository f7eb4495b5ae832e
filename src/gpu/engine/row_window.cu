// SPDX-License-Identifier: MIT
#include "gpu/engine/row_window.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include "core/error.h"
#include "gpu/runtime/cuda_check.h"

namespace mlff::gpu {
namespace {

// A chunk takes longer than what it costs to start a copy and to notice its end, by about ten times.
constexpr int64_t kChunkBytes = 4 << 20;
constexpr int64_t kMostChunks = 32;

static_assert(std::atomic_ref<uint64_t>::is_always_lock_free);  // between processes

// SharedHead::progress: the number of the turn, from 1 on, and the number of rows that have been written in it.
constexpr uint64_t progress_of(uint64_t turn, int64_t rows) { return (turn + 1) << 32 | static_cast<uint64_t>(rows); }

}  // namespace

RowWindow::RowWindow() {
    for (cudaEvent_t& event : read_)
        check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "creating an event");
}
RowWindow::~RowWindow() {
    for (cudaEvent_t event : read_) cudaEventDestroy(event);
    for (const Chunk& chunk : chunks_) cudaEventDestroy(chunk.written);
}

void RowWindow::set(const Halo& halo, int64_t most_row_bytes) {
    forth_ = back_ = {};
    rows_.set(halo, most_row_bytes);
    forth_ = {static_cast<int64_t>(halo.sent.size()), runs_of(rows_.arrivals())};
    back_ = {halo.received_count, runs_of(rows_.returns())};
}

std::vector<RowWindow::Run> RowWindow::runs_of(const SharedRows::Route& route) {
    std::vector<Run> runs;
    for (size_t row = 0; row < route.places.size(); ++row) {
        const RowPlace& place = route.places[row];
        const RowOwner& owner = route.owners[row];
        if (!runs.empty() && runs.back().owner == owner && runs.back().place.index + runs.back().count == place.index)
            ++runs.back().count;
        else
            runs.push_back({owner, place, static_cast<int64_t>(row), 1});
    }
    return runs;
}

void RowWindow::exchange(const unsigned char* sent, unsigned char* received, int64_t row_bytes, cudaStream_t stream) {
    move(forth_, sent, received, row_bytes, stream);
}
void RowWindow::give_back(const unsigned char* given, unsigned char* returned, int64_t row_bytes, cudaStream_t stream) {
    move(back_, given, returned, row_bytes, stream);
}

void RowWindow::move(Traffic& traffic, const unsigned char* sent, unsigned char* received, int64_t row_bytes,
                     cudaStream_t stream) {
    unsigned char* const window = rows_.own(traffic.sent_count, row_bytes);
    check(cudaEventSynchronize(read_[rows_.turn()]), "copying rows of ghosts");
    rows_.meet();
    try {
        before_.follow(stream, arrivals_);  // earlier rows in `received` may still be in use
        write(window, sent, traffic.sent_count, row_bytes, stream);
        wait_for_rows(traffic.runs, received, row_bytes);
        check(cudaEventRecord(read_[rows_.turn()], arrivals_), "copying rows of ghosts");
        after_.follow(arrivals_, stream);
    } catch (...) {
        std::atomic_ref(rows_.own_head().failed_turn).store(rows_.turn_number() + 1);
        rows_.next_turn();
        cudaStreamSynchronize(arrivals_);
        throw;
    }
    rows_.next_turn();
}

void RowWindow::write(unsigned char* window, const unsigned char* sent, int64_t row_count, int64_t row_bytes,
                      cudaStream_t stream) {
    const int64_t rows_of_chunk =
        std::max({int64_t{1}, kChunkBytes / row_bytes, (row_count + kMostChunks - 1) / kMostChunks});
    chunk_count_ = published_ = 0;
    for (int64_t begin = 0; begin < row_count; begin += rows_of_chunk) {
        const int64_t end = std::min(begin + rows_of_chunk, row_count);
        if (chunk_count_ == chunks_.size()) {
            chunks_.emplace_back();
            check(cudaEventCreateWithFlags(&chunks_.back().written, cudaEventDisableTiming), "creating an event");
        }
        Chunk& chunk = chunks_[chunk_count_++];
        chunk.end = end;
        check(cudaMemcpyAsync(window + begin * row_bytes, sent + begin * row_bytes,
                              static_cast<size_t>((end - begin) * row_bytes), cudaMemcpyDeviceToHost, stream),
              "copying rows of atoms");
        check(cudaEventRecord(chunk.written, stream), "copying rows of atoms");
    }
}

void RowWindow::publish(int64_t count) {
    std::atomic_ref(rows_.own_head().progress)
        .store(progress_of(rows_.turn_number(), count), std::memory_order_release);
}

// Returns whether there was something new.
bool RowWindow::publish_written() {
    const size_t before = published_;
    while (published_ < chunk_count_) {
        const cudaError_t status = cudaEventQuery(chunks_[published_].written);
        if (status == cudaErrorNotReady) break;
        check(status, "copying rows of atoms");
        ++published_;
    }
    if (published_ == before) return false;
    publish(chunks_[published_ - 1].end);
    return true;
}

// Returns whether there was something new.
bool RowWindow::copy_arrived(Run& run, unsigned char* received, int64_t row_bytes) {
    const uint64_t nothing = progress_of(rows_.turn_number() + run.owner.turns_ahead, 0);
    const uint64_t progress = std::atomic_ref(head_of(run.owner.data).progress).load(std::memory_order_acquire);
    // The owner may be a turn ahead: its rows of this turn stay where they are until this domain has met it again.
    const bool is_whole = progress >> 32 > nothing >> 32;
    const int64_t there =
        is_whole ? run.count
                 : std::clamp(static_cast<int64_t>(progress - std::min(progress, nothing)) - run.place.index,
                              int64_t{0}, run.count);
    if (there <= run.done) return false;
    check(cudaMemcpyAsync(received + (run.first + run.done) * row_bytes,
                          run.place.first[rows_.turn()] + (run.place.index + run.done) * row_bytes,
                          static_cast<size_t>((there - run.done) * row_bytes), cudaMemcpyHostToDevice, arrivals_),
          "copying rows of ghosts");
    run.done = there;
    return true;
}

void RowWindow::wait_for_rows(std::vector<Run>& runs, unsigned char* received, int64_t row_bytes) {
    for (Run& run : runs) run.done = 0;
    for (;;) {
        bool is_all = true, is_news = publish_written();
        for (Run& run : runs) {
            if (run.done < run.count) is_news |= copy_arrived(run, received, row_bytes);
            is_all &= run.done == run.count;
        }
        is_all &= published_ == chunk_count_;
        if (is_all) return;
        if (is_news) continue;
        for (const Run& run : runs)
            if (run.done < run.count && std::atomic_ref(head_of(run.owner.data).failed_turn).load() ==
                                            rows_.turn_number() + run.owner.turns_ahead + 1)
                fail(Status::device, "another domain failed while it exchanged rows of atoms");
        std::this_thread::yield();
    }
}

}  // namespace mlff::gpu
