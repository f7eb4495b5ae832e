// SPDX-License-Identifier: MIT
#include "gpu/engine/shared_halo.h"

#include "gpu/runtime/cuda_check.h"

namespace mlff::gpu {
namespace {

constexpr const char* kPurpose = "the ghosts";

}  // namespace

void SharedHalo::set(const Halo& halo, int64_t owned_count, int64_t most_row_bytes, int64_t list_version,
                     cudaStream_t stream) {
    rows_.use(halo.exchange);
    const bool can_return = halo.exchange->can_return();
    if (list_version != 0 && list_version == list_version_ && can_return == can_add_back_) return;
    list_version_ = 0;
    owned_count_ = owned_count;
    size_ = {static_cast<int64_t>(halo.sent.size()), halo.received_count};
    ghost_count_ = static_cast<int64_t>(halo.source.size());
    sent_atoms_.upload(halo.sent.data(), size_.sent, kPurpose, stream);
    sources_.upload(halo.source.data(), ghost_count_, kPurpose, stream);
    rows_.set(halo, most_row_bytes);
    places_.upload(rows_.arrivals().places.data(), size_.received, kPurpose, stream);
    can_add_back_ = can_return;
    if (can_return) {
        places_of_returns_.upload(rows_.returns().places.data(), size_.sent, kPurpose, stream);
        returned_.set(halo, owned_count, stream);
    }
    list_version_ = list_version;
}

void SharedHalo::fill(void* rows, int64_t row_bytes, cudaStream_t stream) {
    pack_rows(sent_atoms_.data(), size_.sent, row_bytes, rows, rows_.own(size_.sent, row_bytes), stream);
    check(cudaStreamSynchronize(stream), "packing rows");
    rows_.meet();
    unpack_rows(sources_.data(), ghost_count_, row_bytes, owned_count_, {nullptr, places_.data(), rows_.turn()}, rows,
                stream);
    rows_.next_turn();
}

void SharedHalo::add_back(float* rows, int64_t row_size, cudaStream_t stream) {
    const int64_t row_bytes = row_size * static_cast<int64_t>(sizeof(float));
    returned_.pack(rows, row_size, reinterpret_cast<float*>(rows_.own(size_.received, row_bytes)), stream);
    check(cudaStreamSynchronize(stream), "packing rows");
    rows_.meet();
    returned_.add({nullptr, places_of_returns_.data(), rows_.turn()}, rows, row_size, stream);
    rows_.next_turn();
}

}  // namespace mlff::gpu
