// SPDX-License-Identifier: MIT
#include "gpu/engine/shared_halo.h"

#include <utility>

#include "core/error.h"
#include "gpu/runtime/cuda_check.h"

namespace mlff::gpu {
namespace {

constexpr const char* kPurpose = "the ghosts";

// Sent once for each row that another domain will read.
struct RowAddress {
    GpuAddress rows;
    int64_t bytes_of_turn = 0, index = 0;
};

}  // namespace

const GpuAddress& SharedHalo::address() {
    if (!probe_.data()) probe_ = SharedAllocation(0, kPurpose);
    return probe_.address();
}

void SharedHalo::set(const Halo& halo, int64_t owned_count, int64_t most_row_bytes, int64_t list_version,
                     cudaStream_t stream) {
    exchange_ = halo.exchange;
    if (list_version != 0 && list_version == list_version_) return;
    list_version_ = 0;
    owned_count_ = owned_count;
    size_ = {static_cast<int64_t>(halo.sent.size()), halo.received_count};
    ghost_count_ = static_cast<int64_t>(halo.source.size());
    sent_atoms_.upload(halo.sent.data(), size_.sent, kPurpose, stream);
    sources_.upload(halo.source.data(), ghost_count_, kPurpose, stream);
    news_sent_.resize(halo.sent.size());
    news_received_.resize(static_cast<size_t>(size_.received));
    const int64_t bytes = size_.sent * most_row_bytes;
    if (!rows_.data() || 2 * bytes > rows_.bytes()) {
        bytes_of_turn_ = (bytes + bytes / 8 + 255) / 256 * 256;
        replaced_.push_back(std::exchange(rows_, SharedAllocation(2 * bytes_of_turn_, kPurpose)));
    }
    exchange_addresses(halo, stream);
    turn_ = 0;
    list_version_ = list_version;
}

void SharedHalo::exchange_addresses(const Halo& halo, cudaStream_t stream) {
    std::vector<RowAddress> sent(halo.sent.size()), received(static_cast<size_t>(size_.received));
    for (size_t row = 0; row < sent.size(); ++row)
        sent[row] = {rows_.address(), bytes_of_turn_, static_cast<int64_t>(row)};
    exchange_->exchange(sent.data(), received.data(), sizeof(RowAddress));
    std::vector<RowPlace> places(received.size());
    opened_.begin_round();
    for (size_t row = 0; row < received.size(); ++row) {
        const bool is_as_before = row > 0 && received[row].rows == received[row - 1].rows;
        const unsigned char* first = is_as_before ? places[row - 1].first[0] : opened_.open(received[row].rows);
        places[row] = {{first, first + received[row].bytes_of_turn}, received[row].index};
    }
    opened_.close_rest();
    // This frees what was replaced before the last exchange of addresses. Since then all other domains have closed it.
    replaced_before_ = std::exchange(replaced_, {});
    places_.upload(places.data(), static_cast<int64_t>(places.size()), kPurpose, stream);
}

void SharedHalo::fill(void* rows, int64_t row_bytes, cudaStream_t stream) {
    if (size_.sent * row_bytes > bytes_of_turn_)
        fail(Status::internal, "memory for ", kPurpose, " was taken for smaller rows");
    pack_rows(sent_atoms_.data(), size_.sent, row_bytes, rows, rows_.data() + turn_ * bytes_of_turn_, stream);
    check(cudaStreamSynchronize(stream), "packing rows");
    exchange_->exchange(news_sent_.data(), news_received_.data(), sizeof(uint32_t));
    unpack_rows(sources_.data(), ghost_count_, row_bytes, owned_count_, {nullptr, places_.data(), turn_}, rows, stream);
    turn_ = 1 - turn_;
}

}  // namespace mlff::gpu
