// SPDX-License-Identifier: MIT
// Exclusive scan on the GPU. The counts are split into at most kMostChunks chunks, one per block. The first pass sums
// every chunk. In the second, each block sums the chunks before its own and scans on from there.
#include "gpu/neighbors/exclusive_scan.h"

#include <algorithm>

#include "gpu/runtime/cuda_check.h"

namespace mlff::gpu {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int64_t kMostChunks = 1024;
constexpr int64_t kSmallestChunk = 4 * kThreads;

struct BlockScan {
    int64_t before;  // sum of the values of lower threads
    int64_t total;   // of the block
};

// All threads of the block must call this together.
__device__ BlockScan scan_block(int64_t value) {
    __shared__ int64_t warp_sums[kWarps];
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    int64_t inclusive = value;
    for (int distance = 1; distance < 32; distance *= 2) {
        const int64_t lower = __shfl_up_sync(0xffffffffu, inclusive, distance);
        if (lane >= distance) inclusive += lower;
    }
    __syncthreads();  // wait until the sums of an earlier call have been read
    if (lane == 31) warp_sums[warp] = inclusive;
    __syncthreads();
    BlockScan scan = {inclusive - value, 0};
    for (int other = 0; other < kWarps; ++other) {
        if (other < warp) scan.before += warp_sums[other];
        scan.total += warp_sums[other];
    }
    return scan;
}

struct Chunks {
    const int32_t* counts;
    int64_t count;
    int64_t size;
    __device__ int64_t begin() const { return blockIdx.x * size; }
    __device__ int64_t end() const { return std::min(count, begin() + size); }
};

__global__ void __launch_bounds__(kThreads) add_up_chunks(Chunks chunks, int64_t* totals) {
    mlff::gpu::await_predecessor();
    int64_t sum = 0;
    for (int64_t i = chunks.begin() + threadIdx.x; i < chunks.end(); i += kThreads) sum += chunks.counts[i];
    const BlockScan scan = scan_block(sum);
    if (threadIdx.x == 0) totals[blockIdx.x] = scan.total;
}

template <class Sum>
__global__ void __launch_bounds__(kThreads) scan_chunks(Chunks chunks, const int64_t* totals, Sum* sums) {
    mlff::gpu::await_predecessor();
    int64_t lower_chunks = 0;
    for (unsigned chunk = threadIdx.x; chunk < blockIdx.x; chunk += kThreads) lower_chunks += totals[chunk];
    int64_t so_far = scan_block(lower_chunks).total;
    for (int64_t begin = chunks.begin(); begin < chunks.end(); begin += kThreads) {
        const int64_t i = begin + threadIdx.x;
        const BlockScan scan = scan_block(i < chunks.end() ? chunks.counts[i] : 0);
        if (i < chunks.end()) sums[i] = static_cast<Sum>(so_far + scan.before);
        so_far += scan.total;
    }
}

}  // namespace

ExclusiveScan::ExclusiveScan() { chunk_totals_.resize_discard(kMostChunks, "neighbour lists"); }

template <class Sum>
void ExclusiveScan::scan(const int32_t* counts, int64_t count, Sum* sums, cudaStream_t stream) const {
    const Chunks chunks = {counts, count, std::max(kSmallestChunk, (count + kMostChunks - 1) / kMostChunks)};
    const int64_t blocks = (count + chunks.size - 1) / chunks.size;
    if (blocks > 1) launch("a scan", add_up_chunks, blocks, kThreads, stream, chunks, chunk_totals_.data());
    launch("a scan", scan_chunks<Sum>, blocks, kThreads, stream, chunks, chunk_totals_.data(), sums);
}

void ExclusiveScan::run(const int32_t* counts, int64_t count, int32_t* sums, cudaStream_t stream) const {
    scan(counts, count, sums, stream);
}
void ExclusiveScan::run(const int32_t* counts, int64_t count, int64_t* sums, cudaStream_t stream) const {
    scan(counts, count, sums, stream);
}

}  // namespace mlff::gpu
