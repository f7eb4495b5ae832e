// SPDX-License-Identifier: MIT
#include "cuda_engine/staged_halo.h"

#include "device/cuda_check.h"

namespace mlff::cuda {
namespace {

constexpr const char* kPurpose = "the ghosts";
constexpr int kThreads = 256;

// Rows are moved in pieces of 16 bytes or, where they are no multiple of that, of 4. Launch of both kernels: a thread for each piece.

template <class Piece>
__global__ void __launch_bounds__(kThreads) pack_kernel(const int32_t* atoms, int64_t piece_count, int64_t pieces_of_row, const Piece* rows, Piece* packed) {
    mlff::cuda::await_predecessor();
    const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
    if (i < piece_count) packed[i] = rows[atoms[i / pieces_of_row] * pieces_of_row + i % pieces_of_row];
}

template <class Piece>
__global__ void __launch_bounds__(kThreads) unpack_kernel(const int32_t* sources, int64_t piece_count, int64_t pieces_of_row, int64_t owned_count, const Piece* received, Piece* rows) {
    mlff::cuda::await_predecessor();
    const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
    if (i >= piece_count) return;
    const int32_t source = sources[i / pieces_of_row];
    const Piece* from = source >= 0 ? received + source * pieces_of_row : rows + (-1 - int64_t{source}) * pieces_of_row;
    rows[owned_count * pieces_of_row + i] = from[i % pieces_of_row];
}

int64_t blocks_for(int64_t piece_count) { return (piece_count + kThreads - 1) / kThreads; }

}  // namespace

void StagedHalo::list_buffers(BufferList& list, const HaloSize& size, int64_t most_row_bytes) {
    list.add(sent_atoms_, size.sent, kPurpose);
    list.add(sources_, size.ghosts, kPurpose);
    list.add(sent_, size.sent * most_row_bytes, kPurpose);
    list.add(received_, size.received * most_row_bytes, kPurpose);
}

void StagedHalo::set(const Halo& halo, int64_t owned_count, int64_t most_row_bytes, cudaStream_t stream) {
    exchange_ = halo.exchange;
    is_staged_ = !halo.takes_device_memory;
    owned_count_ = owned_count;
    size_ = {static_cast<int64_t>(halo.sent.size()), halo.received_count, static_cast<int64_t>(halo.source.size())};
    sent_atoms_.upload(halo.sent.data(), size_.sent, kPurpose, stream);
    sources_.upload(halo.source.data(), size_.ghosts, kPurpose, stream);
    if (!is_staged_) return;
    check(cudaStreamSynchronize(stream), "copying rows of ghosts");  // from memory that may be given back now
    host_sent_.resize_discard(size_.sent * most_row_bytes);
    host_received_.resize_discard(size_.received * most_row_bytes);
}

void StagedHalo::fill(void* rows, int64_t row_bytes, cudaStream_t stream) {
    if (row_bytes % 4 != 0) fail(Status::internal, "rows of ghosts have ", row_bytes, " bytes");
    const int64_t sent_bytes = size_.sent * row_bytes, received_bytes = size_.received * row_bytes;
    if (sent_bytes > sent_.capacity() || received_bytes > received_.capacity() ||
        (is_staged_ && (sent_bytes > host_sent_.capacity() || received_bytes > host_received_.capacity())))
        fail(Status::internal, "memory for ", kPurpose, " is not in the list of buffers");
    const auto in_pieces = [&](auto piece) {
        using Piece = decltype(piece);
        const int64_t pieces_of_row = row_bytes / static_cast<int64_t>(sizeof(Piece)), sent_count = size_.sent * pieces_of_row, ghost_count = size_.ghosts * pieces_of_row;
        auto* const at = static_cast<Piece*>(rows);
        if (sent_count > 0) {
            launch("packing rows", pack_kernel<Piece>, blocks_for(sent_count), kThreads, stream, sent_atoms_.data(), sent_count, pieces_of_row, static_cast<const Piece*>(at),
                   reinterpret_cast<Piece*>(sent_.data()));
            if (is_staged_) sent_.download(host_sent_.data(), sent_bytes, stream);
        }
        check(cudaStreamSynchronize(stream), "copying rows of atoms");
        exchange_->exchange(is_staged_ ? host_sent_.data() : sent_.data(), is_staged_ ? host_received_.data() : received_.data(), static_cast<size_t>(row_bytes));
        if (is_staged_ && received_bytes > 0)
            check(cudaMemcpyAsync(received_.data(), host_received_.data(), static_cast<size_t>(received_bytes), cudaMemcpyHostToDevice, stream), "copying rows of ghosts");
        if (ghost_count > 0)
            launch("unpacking rows", unpack_kernel<Piece>, blocks_for(ghost_count), kThreads, stream, sources_.data(), ghost_count, pieces_of_row, owned_count_,
                   reinterpret_cast<const Piece*>(received_.data()), at);
    };
    if (row_bytes % 16 == 0)
        in_pieces(uint4{});
    else
        in_pieces(uint32_t{});
}

}  // namespace mlff::cuda
