// SPDX-License-Identifier: MIT
// Where domains of one machine put rows for each other: memory of this domain, which others read, and that of the
// others. It is memory of GPUs or pinned memory of the host. For CUDA sources only.
//
// Rows go into two buffers alternately, one for each turn (a fill of ghosts), so that a domain may write those of the
// next turn while others still read the last one's.
#pragma once

#include <vector>

#include "gpu/engine/packed_rows.h"
#include "gpu/runtime/shared_allocation.h"
#include "potential/domain.h"

namespace mlff::gpu {

struct RowOwner {
    const unsigned char* data = nullptr;  // SharedAllocation::data()
    uint64_t turns_ahead = 0;             // its turn_number() less that of this domain, modulo 2^64

    bool operator==(const RowOwner&) const = default;
};

class SharedRows {
public:
    explicit SharedRows(SharedIn where) : where_(where) {}

    // A small allocation with which other processes try whether they can read this one's memory; and the reverse.
    const GpuAddress& address();
    // Throws Error{device} with the reason if a GPU cannot read there.
    void reach(const GpuAddress& address, cudaStream_t stream);

    // For this step.
    void use(HaloExchange* exchange) { exchange_ = exchange; }
    // For a new list: takes memory for rows of up to `most_row_bytes`, and exchanges addresses. All domains call it
    // together. Throws what reach() throws.
    void set(const Halo& halo, int64_t most_row_bytes);
    // Rows from other domains, in the order of the halo: where each is, and who puts it there.
    struct Route {
        std::vector<RowPlace> places;
        std::vector<RowOwner> owners;
    };
    const Route& arrivals() const { return arrivals_; }  // [received row]
    const Route& returns() const { return returns_; }    // [sent row]; empty if the exchange cannot return rows

    // This turn's buffer for own rows. Throws if it is too small.
    unsigned char* own(int64_t row_count, int64_t row_bytes) const;
    SharedHead& own_head() const { return head_of(rows_.data()); }
    int turn() const { return static_cast<int>(turn_ % 2); }
    uint64_t turn_number() const { return turn_; }
    void next_turn() { ++turn_; }
    // Calls the exchange. Returns when all domains that this one sends to or receives from have called it.
    void meet();

private:
    Route exchange_addresses(size_t own_count, size_t their_count, bool is_back);

    SharedIn where_;
    HaloExchange* exchange_ = nullptr;
    uint64_t turn_ = 0;
    SharedAllocation rows_;
    int64_t bytes_of_turn_ = 0;
    std::vector<SharedAllocation> replaced_, replaced_before_;  // other domains may still have them open
    OpenedAllocations opened_, probes_;
    SharedAllocation probe_;
    Route arrivals_, returns_;
    std::vector<uint32_t> news_sent_, news_received_;
};

}  // namespace mlff::gpu
