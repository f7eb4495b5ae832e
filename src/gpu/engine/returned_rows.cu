// SPDX-License-Identifier: MIT
#include "gpu/engine/returned_rows.h"

#include <vector>

#include "core/error.h"
#include "gpu/runtime/cuda_check.h"

namespace mlff::gpu {
namespace {

constexpr const char* kPurpose = "the ghosts";
constexpr int kThreads = 256;

__device__ __forceinline__ void add_to(float4& sum, const float4& addend) {
    sum.x += addend.x;
    sum.y += addend.y;
    sum.z += addend.z;
    sum.w += addend.w;
}

// Launch of both kernels: one thread for each four numbers of a row that is written.

__global__ void __launch_bounds__(kThreads)
    pack_returned_kernel(const int32_t* first_ghost, const int32_t* ghosts, int64_t piece_count, int64_t pieces_of_row,
                         const float4* ghost_rows, float4* packed) {
    mlff::gpu::await_predecessor();
    const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
    if (i >= piece_count) return;
    const int64_t row = i / pieces_of_row, piece = i % pieces_of_row;
    float4 sum = {};
    for (int32_t k = first_ghost[row]; k < first_ghost[row + 1]; ++k)
        add_to(sum, ghost_rows[ghosts[k] * pieces_of_row + piece]);
    packed[i] = sum;
}

__global__ void __launch_bounds__(kThreads)
    add_returned_kernel(const int32_t* atoms, const int32_t* first_addend, const int32_t* addends, int64_t piece_count,
                        int64_t pieces_of_row, int64_t owned_count, ReceivedRows returned, float4* rows) {
    mlff::gpu::await_predecessor();
    const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
    if (i >= piece_count) return;
    const int64_t reached = i / pieces_of_row, piece = i % pieces_of_row;
    float4* const to = rows + atoms[reached] * pieces_of_row + piece;
    float4 sum = *to;
    for (int32_t k = first_addend[reached]; k < first_addend[reached + 1]; ++k) {
        const int64_t addend = addends[k];
        const float4* from;
        if (addend < 0) {
            from = rows + (owned_count - 1 - addend) * pieces_of_row;
        } else if (returned.packed) {
            from = static_cast<const float4*>(returned.packed) + addend * pieces_of_row;
        } else {
            const RowPlace& place = returned.places[addend];
            from = reinterpret_cast<const float4*>(place.first[returned.turn]) + place.index * pieces_of_row;
        }
        add_to(sum, from[piece]);
    }
    *to = sum;
}

int64_t pieces_of(int64_t row_size) {
    if (row_size % 4 != 0) fail(Status::internal, "rows that return have ", row_size, " numbers");
    return row_size / 4;
}
int64_t blocks_for(int64_t piece_count) { return (piece_count + kThreads - 1) / kThreads; }

// Places where each of `lists` begins in all of them, one after the other.
template <class Lists>
void upload_lists_of(const Lists& lists, DeviceBuffer<int32_t>& first, DeviceBuffer<int32_t>& all,
                     cudaStream_t stream) {
    std::vector<int32_t> begins = {0}, joined;
    for (const std::vector<int32_t>& list : lists) {
        joined.insert(joined.end(), list.begin(), list.end());
        begins.push_back(static_cast<int32_t>(joined.size()));
    }
    first.upload(begins.data(), static_cast<int64_t>(begins.size()), kPurpose, stream);
    all.upload(joined.data(), static_cast<int64_t>(joined.size()), kPurpose, stream);
}

}  // namespace

void ReturnedRows::set(const Halo& halo, int64_t owned_count, cudaStream_t stream) {
    owned_count_ = owned_count;
    received_count_ = halo.received_count;
    std::vector<std::vector<int32_t>> ghosts(static_cast<size_t>(received_count_));
    std::vector<std::vector<int32_t>> addends(static_cast<size_t>(owned_count));
    for (size_t ghost = 0; ghost < halo.source.size(); ++ghost) {
        const int32_t source = halo.source[ghost];
        if (source < 0)
            addends[static_cast<size_t>(-1 - source)].push_back(-1 - static_cast<int32_t>(ghost));
        else
            ghosts[static_cast<size_t>(source)].push_back(static_cast<int32_t>(ghost));
    }
    for (size_t row = 0; row < halo.sent.size(); ++row)
        addends[static_cast<size_t>(halo.sent[row])].push_back(static_cast<int32_t>(row));
    std::vector<int32_t> reached;
    for (size_t atom = 0; atom < addends.size(); ++atom)
        if (!addends[atom].empty()) reached.push_back(static_cast<int32_t>(atom));
    std::erase_if(addends, [](const auto& list) { return list.empty(); });
    reached_count_ = static_cast<int64_t>(reached.size());
    reached_atoms_.upload(reached.data(), reached_count_, kPurpose, stream);
    upload_lists_of(ghosts, first_ghost_, ghosts_, stream);
    upload_lists_of(addends, first_addend_, addends_, stream);
}

void ReturnedRows::pack(const float* rows, int64_t row_size, float* packed, cudaStream_t stream) const {
    const int64_t pieces_of_row = pieces_of(row_size);
    if (received_count_ == 0) return;
    launch("packing rows of ghosts", pack_returned_kernel, blocks_for(received_count_ * pieces_of_row), kThreads,
           stream, first_ghost_.data(), ghosts_.data(), received_count_ * pieces_of_row, pieces_of_row,
           reinterpret_cast<const float4*>(rows + owned_count_ * row_size), reinterpret_cast<float4*>(packed));
}

void ReturnedRows::add(const ReceivedRows& returned, float* rows, int64_t row_size, cudaStream_t stream) const {
    const int64_t pieces_of_row = pieces_of(row_size);
    if (reached_count_ == 0) return;
    launch("adding rows of ghosts", add_returned_kernel, blocks_for(reached_count_ * pieces_of_row), kThreads, stream,
           reached_atoms_.data(), first_addend_.data(), addends_.data(), reached_count_ * pieces_of_row, pieces_of_row,
           owned_count_, returned, reinterpret_cast<float4*>(rows));
}

}  // namespace mlff::gpu
