// SPDX-License-Identifier: MIT
// Helpers for kernels and their launches. For CUDA sources only.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <vector>

#include "gpu/engine/atom_rows.h"
#include "gpu/runtime/device_buffer.h"

namespace mlff::gpu {

inline constexpr unsigned kAllLanes = 0xffffffffu;

// 16 bytes of numbers, loaded or stored in one instruction. The features of an atom and the rows of radial tables are
// multiples of it.
template <class Real>
inline constexpr int kVectorSize = 16 / static_cast<int>(sizeof(Real));
template <class Real>
struct alignas(16) Vector {
    Real at[kVectorSize<Real>] = {};
};
template <class Real>
__device__ __forceinline__ Vector<Real> load_vector(const Real* from) {
    return *reinterpret_cast<const Vector<Real>*>(from);
}
template <class Real>
__device__ __forceinline__ void store_vector(Real* to, const Vector<Real>& numbers) {
    *reinterpret_cast<Vector<Real>*>(to) = numbers;
}

// Every lane gets the sum.
template <class Number>
__device__ __forceinline__ Number sum_over_warp(Number value) {
#pragma unroll
    for (int distance = 16; distance >= 1; distance /= 2) value += __shfl_xor_sync(kAllLanes, value, distance);
    return value;
}

// Every thread of a block of kBlockThreads gets the sum. All of them must call it. `partial` [kWarps] is shared memory.
template <class Number>
__device__ __forceinline__ Number sum_over_block(Number value, Number* partial) {
    value = sum_over_warp(value);
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
    __syncthreads();
    Number sum = 0;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) sum += partial[w];
    return sum;
}

// Launch: blocks_of_atoms blocks of kBlockThreads, one warp per atom.
struct WarpOfAtom {
    int64_t atom;
    int lane;
    __device__ WarpOfAtom()
        : atom((blockIdx.x * int64_t{kBlockThreads} + threadIdx.x) / 32), lane(static_cast<int>(threadIdx.x % 32)) {}
};
inline int64_t blocks_of_atoms(int64_t atom_count) { return (atom_count + kWarps - 1) / kWarps; }

template <class T>
void upload(DeviceBuffer<T>& buffer, const std::vector<T>& host, cudaStream_t stream) {
    buffer.upload(host.data(), static_cast<int64_t>(host.size()), "the model", stream);
}
// Uploads lists one after the other: list i is items[first[i]] ... items[first[i + 1] - 1].
template <class T>
void upload_lists(const std::vector<std::vector<T>>& lists, DeviceBuffer<T>& items, DeviceBuffer<int32_t>& first,
                  cudaStream_t stream) {
    std::vector<T> flat;
    std::vector<int32_t> begin = {0};
    for (const auto& list : lists) {
        flat.insert(flat.end(), list.begin(), list.end());
        begin.push_back(static_cast<int32_t>(flat.size()));
    }
    upload(items, flat, stream);
    upload(first, begin, stream);
}

}  // namespace mlff::gpu
