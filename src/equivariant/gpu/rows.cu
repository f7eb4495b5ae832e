// SPDX-License-Identifier: MIT
#include "equivariant/gpu/rows.h"

#include "gpu/engine/atom_rows.h"
#include "gpu/engine/warp.h"
#include "gpu/runtime/cuda_check.h"

namespace mlff::equivariant::gpu {
namespace {

using mlff::gpu::launch;

// Launch: one warp per atom.
template <class Real>
__global__ void __launch_bounds__(kBlockThreads)
    copy_columns_kernel(int64_t atom_count, int count, const Real* from, int from_stride, double* to, int to_stride) {
    mlff::gpu::await_predecessor();
    const WarpOfAtom at;
    if (at.atom >= atom_count) return;
    for (int k = at.lane; k < count; k += 32) to[at.atom * to_stride + k] = from[at.atom * from_stride + k];
}

// Launch: one thread per number.
template <class Real>
__global__ void __launch_bounds__(kBlockThreads)
    add_bias_kernel(int64_t count, const Real* bias, Real* rows, int size) {
    mlff::gpu::await_predecessor();
    const int64_t i = int64_t{blockIdx.x} * kBlockThreads + threadIdx.x;
    if (i < count) rows[i] += bias[i % size];
}

}  // namespace

template <class Real>
void copy_columns(int64_t atom_count, int count, const Real* from, int from_stride, double* to, int to_stride,
                  cudaStream_t stream) {
    if (atom_count > 0)
        launch("copying columns", copy_columns_kernel<Real>, blocks_of_atoms(atom_count), kBlockThreads, stream,
               atom_count, count, from, from_stride, to, to_stride);
}

template <class Real>
void add_bias(int64_t atom_count, const Real* bias, Real* rows, int size, cudaStream_t stream) {
    const int64_t count = atom_count * size;
    if (count > 0)
        launch("adding a bias", add_bias_kernel<Real>, (count + kBlockThreads - 1) / kBlockThreads, kBlockThreads,
               stream, count, bias, rows, size);
}

template void copy_columns<float>(int64_t, int, const float*, int, double*, int, cudaStream_t);
template void copy_columns<double>(int64_t, int, const double*, int, double*, int, cudaStream_t);
template void add_bias<float>(int64_t, const float*, float*, int, cudaStream_t);
template void add_bias<double>(int64_t, const double*, double*, int, cudaStream_t);

}  // namespace mlff::equivariant::gpu
