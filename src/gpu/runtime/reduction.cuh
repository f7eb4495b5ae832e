// SPDX-License-Identifier: MIT
// Sums over atoms in an order that depends only on their number, so that repeated runs agree bit for bit.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "gpu/runtime/cuda_check.h"
#include "gpu/runtime/device_buffer.h"

namespace mlff::gpu {

constexpr int kReductionThreads = 128;
constexpr int64_t kMostReductionBlocks = 1024;
constexpr int64_t kFewItems =
    8 * kReductionThreads;  // up to here, a few items per thread are faster than a second launch

// Sum: the default is zero, merge(other) adds. Source: add(i, sum) adds item i.
template <class Sum, class Source>
__global__ void __launch_bounds__(kReductionThreads) reduce_block(Source source, int64_t count, Sum* sums) {
    mlff::gpu::await_predecessor();
    alignas(Sum) __shared__ unsigned char storage[kReductionThreads * sizeof(Sum)];
    Sum* part = reinterpret_cast<Sum*>(storage);
    Sum sum;
    const int64_t stride = int64_t{gridDim.x} * blockDim.x;
    for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) source.add(i, sum);
    part[threadIdx.x] = sum;
    for (int half = kReductionThreads / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) part[threadIdx.x].merge(part[threadIdx.x + half]);
    }
    if (threadIdx.x == 0) sums[blockIdx.x] = part[0];
}

template <class Sum>
struct PartialSums {
    const Sum* sums;
    __device__ void add(int64_t i, Sum& sum) const { sum.merge(sums[i]); }
};

// `sums` has kMostReductionBlocks + 1 elements; the last is the result.
template <class Sum, class Source>
void reduce(const Source& source, int64_t count, Sum* sums, cudaStream_t stream) {
    const int64_t wanted = (count + kReductionThreads - 1) / kReductionThreads;
    const int64_t blocks = count <= kFewItems ? 1 : std::min(wanted, kMostReductionBlocks);
    Sum* result = sums + kMostReductionBlocks;
    launch("a reduction", reduce_block<Sum, Source>, blocks, kReductionThreads, stream, source, count,
           blocks == 1 ? result : sums);
    if (blocks == 1) return;
    launch("a reduction", reduce_block<Sum, PartialSums<Sum>>, 1, kReductionThreads, stream, PartialSums<Sum>{sums},
           blocks, result);
}

}  // namespace mlff::gpu
