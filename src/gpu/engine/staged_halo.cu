// SPDX-License-Identifier: MIT
#include "gpu/engine/staged_halo.h"

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

void StagedHalo::set(const Halo& halo, int64_t owned_count, int64_t most_row_bytes, int64_t list_version,
                     cudaStream_t stream) {
    exchange_ = halo.exchange;
    is_staged_ = halo.transport == RowTransport::host;
    owned_count_ = owned_count;
    size_ = {static_cast<int64_t>(halo.sent.size()), halo.received_count};
    ghost_count_ = static_cast<int64_t>(halo.source.size());
    if (list_version == 0 || list_version != list_version_) {
        list_version_ = 0;
        sent_atoms_.upload(halo.sent.data(), size_.sent, kPurpose, stream);
        sources_.upload(halo.source.data(), ghost_count_, kPurpose, stream);
        list_version_ = list_version;
    }
    if (!is_staged_) return;
    reserve(host_sent_, size_.sent * most_row_bytes);
    reserve(host_received_, size_.received * most_row_bytes);
}

void StagedHalo::fill(void* rows, int64_t row_bytes, cudaStream_t stream) {
    const int64_t sent_bytes = size_.sent * row_bytes, received_bytes = size_.received * row_bytes;
    if (sent_bytes > sent_.capacity() || received_bytes > received_.capacity() ||
        (is_staged_ && (sent_bytes > host_sent_.capacity() || received_bytes > host_received_.capacity())))
        fail(Status::internal, "memory for ", kPurpose, " is not in the list of buffers");
    pack_rows(sent_atoms_.data(), size_.sent, row_bytes, rows, sent_.data(), stream);
    if (is_staged_) sent_.download(host_sent_.data(), sent_bytes, stream);
    check(cudaStreamSynchronize(stream), "copying rows of atoms");
    exchange_->exchange(is_staged_ ? host_sent_.data() : sent_.data(),
                        is_staged_ ? host_received_.data() : received_.data(), static_cast<size_t>(row_bytes));
    if (is_staged_ && received_bytes > 0)
        check(cudaMemcpyAsync(received_.data(), host_received_.data(), static_cast<size_t>(received_bytes),
                              cudaMemcpyHostToDevice, stream),
              "copying rows of ghosts");
    unpack_rows(sources_.data(), ghost_count_, row_bytes, owned_count_, {received_.data()}, rows, stream);
}

}  // namespace mlff::gpu
