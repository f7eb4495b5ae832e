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
    const bool is_known = list_version != 0 && list_version == list_version_ && halo.transport == transport_ &&
                          halo.exchange->can_return() == can_add_back_;
    transport_ = halo.transport;
    owned_count_ = owned_count;
    size_ = {static_cast<int64_t>(halo.sent.size()), halo.received_count};
    ghost_count_ = static_cast<int64_t>(halo.source.size());
    if (!is_known) {
        list_version_ = 0;
        sent_atoms_.upload(halo.sent.data(), size_.sent, kPurpose, stream);
        sources_.upload(halo.source.data(), ghost_count_, kPurpose, stream);
        can_add_back_ = halo.exchange->can_return();
        if (can_add_back_) returned_.set(halo, owned_count, stream);
        if (transport_ == RowTransport::window) window().set(halo, most_row_bytes);
        list_version_ = list_version;
    }
    if (transport_ != RowTransport::host) return;
    reserve(host_sent_, size_.sent * most_row_bytes);
    reserve(host_received_, size_.received * most_row_bytes);
}

void StagedHalo::require_room(int64_t row_bytes) const {
    const int64_t sent_bytes = size_.sent * row_bytes, received_bytes = size_.received * row_bytes;
    if (sent_bytes > sent_.capacity() || received_bytes > received_.capacity() ||
        (transport_ == RowTransport::host &&
         (sent_bytes > host_sent_.capacity() || received_bytes > host_received_.capacity())))
        fail(Status::internal, "memory for ", kPurpose, " is not in the list of buffers");
}

void StagedHalo::fill(void* rows, int64_t row_bytes, cudaStream_t stream) {
    require_room(row_bytes);
    pack_rows(sent_atoms_.data(), size_.sent, row_bytes, rows, sent_.data(), stream);
    move(false, row_bytes, stream);
    unpack_rows(sources_.data(), ghost_count_, row_bytes, owned_count_, {received_.data()}, rows, stream);
}

void StagedHalo::add_back(float* rows, int64_t row_size, cudaStream_t stream) {
    const int64_t row_bytes = row_size * static_cast<int64_t>(sizeof(float));
    require_room(row_bytes);
    returned_.pack(rows, row_size, reinterpret_cast<float*>(received_.data()), stream);
    move(true, row_bytes, stream);
    returned_.add({sent_.data()}, rows, row_size, stream);
}

void StagedHalo::move(bool is_back, int64_t row_bytes, cudaStream_t stream) {
    const DeviceBuffer<unsigned char>& from = is_back ? received_ : sent_;
    DeviceBuffer<unsigned char>& to = is_back ? sent_ : received_;
    if (transport_ == RowTransport::window) {
        const int64_t version = std::exchange(list_version_, 0);  // after a failure addresses are exchanged again
        if (is_back)
            window_->give_back(from.data(), to.data(), row_bytes, stream);
        else
            window_->exchange(from.data(), to.data(), row_bytes, stream);
        list_version_ = version;
        return;
    }
    const bool is_staged = transport_ == RowTransport::host;
    PinnedBuffer<unsigned char>& host_from = is_back ? host_received_ : host_sent_;
    PinnedBuffer<unsigned char>& host_to = is_back ? host_sent_ : host_received_;
    if (is_staged) from.download(host_from.data(), (is_back ? size_.received : size_.sent) * row_bytes, stream);
    check(cudaStreamSynchronize(stream), "copying rows of atoms");
    const void* const given = is_staged ? host_from.data() : from.data();
    void* const taken = is_staged ? host_to.data() : to.data();
    if (is_back)
        exchange_->give_back(given, taken, static_cast<size_t>(row_bytes));
    else
        exchange_->exchange(given, taken, static_cast<size_t>(row_bytes));
    const int64_t arrived_bytes = (is_back ? size_.sent : size_.received) * row_bytes;
    if (is_staged && arrived_bytes > 0)
        check(cudaMemcpyAsync(to.data(), host_to.data(), static_cast<size_t>(arrived_bytes), cudaMemcpyHostToDevice,
                              stream),
              "copying rows of ghosts");
}

}  // namespace mlff::gpu
