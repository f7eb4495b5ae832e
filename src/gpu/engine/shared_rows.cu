// SPDX-License-Identifier: MIT
#include "gpu/engine/shared_rows.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "gpu/runtime/cuda_check.h"
#include "gpu/runtime/device_buffer.h"

namespace mlff::gpu {
namespace {

constexpr const char* kPurpose = "the ghosts";

// Sent once for each row that another domain will read.
struct RowAddress {
    GpuAddress rows;
    int64_t bytes_of_turn = 0, index = 0;
    uint64_t turn = 0;
};

// What a kernel, or for host memory a copy, reads there. The host may reach memory that these do not.
uint64_t token_read_on_gpu(const unsigned char* token, bool is_host, cudaStream_t stream) {
    DeviceBuffer<uint64_t> read;
    read.resize_discard(1, kPurpose);
    if (is_host) {
        check(cudaMemcpyAsync(read.data(), token, sizeof(uint64_t), cudaMemcpyHostToDevice, stream), "reading a token");
    } else {
        const RowPlace place = {{token, token}, 0};
        const int32_t source = 0;
        DeviceBuffer<RowPlace> places;
        DeviceBuffer<int32_t> sources;
        places.upload(&place, 1, kPurpose, stream);
        sources.upload(&source, 1, kPurpose, stream);
        unpack_rows(sources.data(), 1, sizeof(uint64_t), 0, {nullptr, places.data(), 0}, read.data(), stream);
    }
    uint64_t found = 0;
    read.download(&found, 1, stream);
    check(cudaStreamSynchronize(stream), "reading a token");
    return found;
}

}  // namespace

const GpuAddress& SharedRows::address() {
    if (!probe_.data()) probe_ = SharedAllocation(where_, 0, kPurpose);
    return probe_.address();
}

void SharedRows::reach(const GpuAddress& address, cudaStream_t stream) {
    const unsigned char* const token = probes_.open(address) - SharedAllocation::kHead;
    if (token_read_on_gpu(token, where_ == SharedIn::host, stream) != address.token)
        fail(Status::device, "the GPU does not read what another process has written to memory that they share");
}

void SharedRows::set(const Halo& halo, int64_t most_row_bytes) {
    use(halo.exchange);
    const size_t sent = halo.sent.size(), received = static_cast<size_t>(halo.received_count);
    const bool can_return = exchange_->can_return();
    news_sent_.resize(sent);
    news_received_.resize(received);
    const auto most_rows = static_cast<int64_t>(can_return ? std::max(sent, received) : sent);
    const int64_t bytes = most_rows * most_row_bytes;
    if (!rows_.data() || 2 * bytes > rows_.bytes()) {
        bytes_of_turn_ = (bytes + bytes / 8 + 255) / 256 * 256;
        replaced_.push_back(std::exchange(rows_, SharedAllocation(where_, 2 * bytes_of_turn_, kPurpose)));
    }
    opened_.begin_round();
    arrivals_ = exchange_addresses(sent, received, false);
    returns_ = can_return ? exchange_addresses(received, sent, true) : Route{};
    opened_.close_rest();
    // This frees what was replaced before the last exchange of addresses. Since then all other domains have closed it.
    replaced_before_ = std::exchange(replaced_, {});
}

SharedRows::Route SharedRows::exchange_addresses(size_t own_count, size_t their_count, bool is_back) {
    std::vector<RowAddress> own(own_count), theirs(their_count);
    for (size_t row = 0; row < own.size(); ++row)
        own[row] = {rows_.address(), bytes_of_turn_, static_cast<int64_t>(row), turn_};
    if (is_back)
        exchange_->give_back(own.data(), theirs.data(), sizeof(RowAddress));
    else
        exchange_->exchange(own.data(), theirs.data(), sizeof(RowAddress));
    Route route;
    route.places.resize(their_count);
    route.owners.resize(their_count);
    for (size_t row = 0; row < their_count; ++row) {
        const RowAddress& found = theirs[row];
        const bool is_as_before = row > 0 && found.rows == theirs[row - 1].rows;
        const unsigned char* const data = is_as_before ? route.owners[row - 1].data : opened_.open(found.rows);
        route.owners[row] = {data, found.turn - turn_};
        // Each domain counts its own turns, so that in this turn another one may use its second buffer.
        const int64_t first = route.owners[row].turns_ahead % 2 == 0 ? 0 : found.bytes_of_turn;
        route.places[row] = {{data + first, data + found.bytes_of_turn - first}, found.index};
    }
    return route;
}

unsigned char* SharedRows::own(int64_t row_count, int64_t row_bytes) const {
    if (row_count * row_bytes > bytes_of_turn_)
        fail(Status::internal, "memory for ", kPurpose, " was taken for smaller rows");
    return rows_.data() + turn() * bytes_of_turn_;
}

void SharedRows::meet() { exchange_->exchange(news_sent_.data(), news_received_.data(), sizeof(uint32_t)); }

}  // namespace mlff::gpu
