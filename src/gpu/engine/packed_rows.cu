// SPDX-License-Identifier: MIT
#include "gpu/engine/packed_rows.h"

#include "core/error.h"
#include "gpu/runtime/cuda_check.h"

namespace mlff::gpu {
namespace {

constexpr int kThreads = 256;

// Rows are copied in pieces of 16 bytes, or of 4 if the row size is not a multiple of 16.
// Launch of both kernels: one thread per piece.

template <class Piece>
__global__ void __launch_bounds__(kThreads)
    pack_kernel(const int32_t* atoms, int64_t piece_count, int64_t pieces_of_row, const Piece* rows, Piece* packed) {
    mlff::gpu::await_predecessor();
    const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
    if (i < piece_count) packed[i] = rows[atoms[i / pieces_of_row] * pieces_of_row + i % pieces_of_row];
}

template <class Piece>
__global__ void __launch_bounds__(kThreads)
    unpack_kernel(const int32_t* sources, int64_t piece_count, int64_t pieces_of_row, int64_t owned_count,
                  ReceivedRows received, Piece* rows) {
    mlff::gpu::await_predecessor();
    const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
    if (i >= piece_count) return;
    const int64_t source = sources[i / pieces_of_row];
    const Piece* from;
    if (source < 0) {
        from = rows + (-1 - source) * pieces_of_row;
    } else if (received.packed) {
        from = static_cast<const Piece*>(received.packed) + source * pieces_of_row;
    } else {
        const RowPlace& place = received.places[source];
        from = reinterpret_cast<const Piece*>(place.first[received.turn]) + place.index * pieces_of_row;
    }
    rows[owned_count * pieces_of_row + i] = from[i % pieces_of_row];
}

int64_t blocks_for(int64_t piece_count) { return (piece_count + kThreads - 1) / kThreads; }

// action(a value of the piece type, number of pieces in a row)
template <class Action>
void in_pieces(int64_t row_bytes, const Action& action) {
    if (row_bytes % 4 != 0) fail(Status::internal, "rows of atoms have ", row_bytes, " bytes");
    if (row_bytes % 16 == 0)
        action(uint4{}, row_bytes / 16);
    else
        action(uint32_t{}, row_bytes / 4);
}

}  // namespace

void pack_rows(const int32_t* atoms, int64_t count, int64_t row_bytes, const void* rows, void* packed,
               cudaStream_t stream) {
    if (count == 0) return;
    in_pieces(row_bytes, [&](auto piece, int64_t pieces_of_row) {
        using Piece = decltype(piece);
        launch("packing rows", pack_kernel<Piece>, blocks_for(count * pieces_of_row), kThreads, stream, atoms,
               count * pieces_of_row, pieces_of_row, static_cast<const Piece*>(rows), static_cast<Piece*>(packed));
    });
}

void unpack_rows(const int32_t* sources, int64_t count, int64_t row_bytes, int64_t owned_count,
                 const ReceivedRows& received, void* rows, cudaStream_t stream) {
    if (count == 0) return;
    in_pieces(row_bytes, [&](auto piece, int64_t pieces_of_row) {
        using Piece = decltype(piece);
        launch("unpacking rows", unpack_kernel<Piece>, blocks_for(count * pieces_of_row), kThreads, stream, sources,
               count * pieces_of_row, pieces_of_row, owned_count, received, static_cast<Piece*>(rows));
    });
}

}  // namespace mlff::gpu
