// SPDX-License-Identifier: MIT
// Brings packed rows from GPU to GPU through pinned host memory that the domains of one machine share: a GPU copies its
// rows there, and the others copy them from there. No CPU copies rows, and no message carries them. For CUDA sources
// only.
//
// Rows go in chunks. A domain tells the others how far it is by a number at the start of its memory, so that some
// chunks arrive while others are still being written. The caller's exchange, called once for each turn, keeps a domain
// from writing to a buffer that is still being read: a domain calls the exchange of turn n when its copies of turn n -
// 2 have ended, and writes rows of turn n, to the same buffers, when that exchange has returned.
#pragma once

#include <vector>

#include "gpu/engine/shared_rows.h"
#include "gpu/runtime/cuda_stream.h"
#include "potential/domain.h"

namespace mlff::gpu {

class RowWindow {
public:
    RowWindow();
    RowWindow(const RowWindow&) = delete;
    RowWindow& operator=(const RowWindow&) = delete;
    ~RowWindow();

    SharedRows& rows() { return rows_; }
    // For a new list, in all domains together. Throws what SharedRows::reach() throws.
    void set(const Halo& halo, int64_t most_row_bytes);
    // From `sent` to the other domains, and from these to `received`; both on the device. Copies are enqueued when it
    // returns. Throws Error{device} if another domain has failed meanwhile.
    void exchange(const unsigned char* sent, unsigned char* received, int64_t row_bytes, cudaStream_t stream);
    // The other way round, from ghosts to the atoms that they copy; as HaloExchange::give_back().
    void give_back(const unsigned char* given, unsigned char* returned, int64_t row_bytes, cudaStream_t stream);

private:
    // Received rows that follow each other in the memory of their owner.
    struct Run {
        RowOwner owner;
        RowPlace place;                          // of the first
        int64_t first = 0, count = 0, done = 0;  // received rows; those of them whose copy is enqueued
    };
    // Rows [0, end) have been written when the event has taken place.
    struct Chunk {
        int64_t end = 0;
        cudaEvent_t written = nullptr;
    };
    // Rows from this domain and to it, all those of one direction.
    struct Traffic {
        int64_t sent_count = 0;
        std::vector<Run> runs;
    };
    static std::vector<Run> runs_of(const SharedRows::Route& route);
    void move(Traffic& traffic, const unsigned char* sent, unsigned char* received, int64_t row_bytes,
              cudaStream_t stream);
    void write(unsigned char* window, const unsigned char* sent, int64_t row_count, int64_t row_bytes,
               cudaStream_t stream);
    bool publish_written();
    bool copy_arrived(Run& run, unsigned char* received, int64_t row_bytes);
    void publish(int64_t count);
    void wait_for_rows(std::vector<Run>& runs, unsigned char* received, int64_t row_bytes);

    SharedRows rows_{SharedIn::host};
    Traffic forth_, back_;
    std::vector<Chunk> chunks_;
    size_t chunk_count_ = 0, published_ = 0;  // of this turn
    Stream arrivals_;                         // copies in both directions take place at the same time
    StreamOrder before_, after_;
    cudaEvent_t read_[2] = {};  // [turn]: the copies from other domains have ended
};

}  // namespace mlff::gpu
