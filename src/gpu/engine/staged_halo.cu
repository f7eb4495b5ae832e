// SPDX-License-Identifier: MIT
#include "gpu/engine/staged_halo.h"

#include <utility>

#include "gpu/engine/packed_rows.h"
#include "gpu/runtime/cuda_check.h"

namespace mlff::gpu {
namespace {

constexpr const char* kPurpose = "the ghosts";

// Takes an eighth more, for lists that grow a little.
void reserve(PinnedBuffer<unsigned char>& buffer, int64_t bytes) {
    if (bytes > buffer.capacity()) buffer.resize_discard(bytes + bytes / 8);
}

}  // namespace

void StagedHalo::list_buffers(BufferList& list, const HaloSize& size, int64_t most_row_bytes) {
    list.add(sent_, size.sent * most_row_bytes, kPurpose);
    list.add(received_, size.received * most_row_bytes, kPurpose);
}

RowWindow& StagedHalo::window() {
    if (!window_) window_ = std::make_unique<RowWindow>();
    return *window_;
}

void StagedHalo::set(const Halo& halo, int64_t owned_count, int64_t most_row_bytes, int64_t list_version,
                     cudaStream_t stream) {
    exchange_ = halo.exchange;
    if (window_) window_->rows().use(halo.exchange);
    const bool is_known = list_version != 0 && list_version == list_version_ && halo.transport == transport_;
    transport_ = halo.transport;
    owned_count_ = owned_count;
    size_ = {static_cast<int64_t>(halo.sent.size()), halo.received_count};
    ghost_count_ = static_cast<int64_t>(halo.source.size());
    if (!is_known) {
        list_version_ = 0;
        sent_atoms_.upload(halo.sent.data(), size_.sent, kPurpose, stream);
        sources_.upload(halo.source.data(), ghost_count_, kPurpose, stream);
        if (transport_ == RowTransport::window) window().set(halo, most_row_bytes);
        list_version_ = list_version;
    }
    if (transport_ != RowTransport::host) return;
    reserve(host_sent_, size_.sent * most_row_bytes);
    reserve(host_received_, size_.received * most_row_bytes);
}

void StagedHalo::fill(void* rows, int64_t row_bytes, cudaStream_t stream) {
    if (size_.sent * row_bytes > sent_.capacity() || size_.received * row_bytes > received_.capacity())
        fail(Status::internal, "memory for ", kPurpose, " is not in the list of buffers");
    pack_rows(sent_atoms_.data(), size_.sent, row_bytes, rows, sent_.data(), stream);
    if (transport_ == RowTransport::window) {
        const int64_t version = std::exchange(list_version_, 0);  // after a failure addresses are exchanged again
        window_->exchange(sent_.data(), received_.data(), row_bytes, stream);
        list_version_ = version;
    } else if (transport_ == RowTransport::host) {
        exchange_on_host(row_bytes, stream);
    } else {
        exchange_on_device(row_bytes, stream);
    }
    unpack_rows(sources_.data(), ghost_count_, row_bytes, owned_count_, {received_.data()}, rows, stream);
}

void StagedHalo::exchange_on_host(int64_t row_bytes, cudaStream_t stream) {
    const int64_t sent_bytes = size_.sent * row_bytes, received_bytes = size_.received * row_bytes;
    if (sent_bytes > host_sent_.capacity() || received_bytes > host_received_.capacity())
        fail(Status::internal, "memory for ", kPurpose, " was taken for smaller rows");
    sent_.download(host_sent_.data(), sent_bytes, stream);
    check(cudaStreamSynchronize(stream), "copying rows of atoms");
    exchange_->exchange(host_sent_.data(), host_received_.data(), static_cast<size_t>(row_bytes));
    if (received_bytes > 0)
        check(cudaMemcpyAsync(received_.data(), host_received_.data(), static_cast<size_t>(received_bytes),
                              cudaMemcpyHostToDevice, stream),
              "copying rows of ghosts");
}

void StagedHalo::exchange_on_device(int64_t row_bytes, cudaStream_t stream) {
    check(cudaStreamSynchronize(stream), "packing rows");
    exchange_->exchange(sent_.data(), received_.data(), static_cast<size_t>(row_bytes));
}

}  // namespace mlff::gpu
