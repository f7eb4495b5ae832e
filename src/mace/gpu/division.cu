// SPDX-License-Identifier: MIT
#include "mace/gpu/division.h"

#include "gpu/engine/instructions.h"
#include "gpu/engine/warp.h"
#include "gpu/runtime/cuda_check.h"

namespace mlff::mace::gpu {
namespace {

using mlff::gpu::launch;

// Launch of the two kernels: one block per atom.

template <class Real>
__device__ void scale_row(Real* row, int size, Real factor) {
    constexpr int kSize = kVectorSize<Real>;
#pragma unroll 4
    for (int k = static_cast<int>(threadIdx.x) * kSize; k < size; k += kBlockThreads * kSize) {
        Vector<Real> numbers = load_vector(row + k);
        for (int i = 0; i < kSize; ++i) numbers.at[i] *= factor;
        store_vector(row + k, numbers);
    }
}

template <class Real>
__global__ void __launch_bounds__(kBlockThreads)
    divide_kernel(Real constant, Real by_density, const Real* densities, Real* divisors, Real* rows, int size) {
    mlff::gpu::await_predecessor();
    const int64_t atom = blockIdx.x;
    const Real divisor = constant + by_density * densities[atom];
    scale_row(rows + atom * size, size, 1 / divisor);
    if (threadIdx.x == 0) divisors[atom] = divisor;
}

// `rows` may be the same array as `a`: a thread only scales numbers that no other thread reads.
template <class Real>
__global__ void __launch_bounds__(kBlockThreads)
    reverse_division_kernel(Real by_density, const Real* a, const Real* b, int dot_size, const Real* divisors,
                            Real* densities_gradient, Real* rows, int size) {
    mlff::gpu::await_predecessor();
    __shared__ Real partial[kWarps];
    constexpr int kSize = kVectorSize<Real>;
    const int64_t atom = blockIdx.x;
    Real dot = 0;
    if (by_density != 0) {
#pragma unroll 4
        for (int k = static_cast<int>(threadIdx.x) * kSize; k < dot_size; k += kBlockThreads * kSize) {
            const Vector<Real> x = load_vector(a + atom * dot_size + k), y = load_vector(b + atom * dot_size + k);
            for (int i = 0; i < kSize; ++i) dot += x.at[i] * y.at[i];
        }
        dot = sum_over_block(dot, partial);
    }
    const Real divisor = divisors[atom];
    if (threadIdx.x == 0) densities_gradient[atom] = -by_density * dot / divisor;
    scale_row(rows + atom * size, size, 1 / divisor);
}

}  // namespace

template <class Real>
void divide_rows(int64_t atom_count, Real constant, Real by_density, const Real* densities, Real* divisors, Real* rows,
                 int size, cudaStream_t stream) {
    if (atom_count > 0)
        launch("dividing messages", divide_kernel<Real>, atom_count, kBlockThreads, stream, constant, by_density,
               densities, divisors, rows, size);
}

template <class Real>
void reverse_division(int64_t atom_count, Real by_density, const Real* a, const Real* b, int dot_size,
                      const Real* divisors, Real* densities_gradient, Real* rows, int size, cudaStream_t stream) {
    if (atom_count > 0)
        launch("reversing a division", reverse_division_kernel<Real>, atom_count, kBlockThreads, stream, by_density, a,
               b, dot_size, divisors, densities_gradient, rows, size);
}

template void divide_rows<float>(int64_t, float, float, const float*, float*, float*, int, cudaStream_t);
template void divide_rows<double>(int64_t, double, double, const double*, double*, double*, int, cudaStream_t);
template void reverse_division<float>(int64_t, float, const float*, const float*, int, const float*, float*, float*,
                                      int, cudaStream_t);
template void reverse_division<double>(int64_t, double, const double*, const double*, int, const double*, double*,
                                       double*, int, cudaStream_t);

}  // namespace mlff::mace::gpu
