// SPDX-License-Identifier: MIT
#include "gpu/engine/totals.h"

#include "gpu/engine/chunk_sum.cuh"
#include "gpu/runtime/cuda_check.h"

namespace mlff::gpu {
namespace {

// Launch: one block per chunk, one warp per column.
__global__ void __launch_bounds__(32 * kTotalCount) sum_chunks_kernel(AtomResults atoms, double* partial) {
    mlff::gpu::await_predecessor();
    const int column = static_cast<int>(threadIdx.x / 32);
    const double sum = sum_chunk(atoms, atoms.systems.chunks[blockIdx.x], column);
    if (threadIdx.x % 32 == 0) partial[int64_t{blockIdx.x} * kTotalCount + column] = sum;
}

// Launch: one block per system, one thread per column.
__global__ void sum_systems_kernel(SystemsView systems, int column_count, const double* partial, double* totals) {
    mlff::gpu::await_predecessor();
    const int column = static_cast<int>(threadIdx.x);
    if (column >= kTotalCount) return;
    double sum = 0;
    if (column < column_count)
        for (int32_t chunk = systems.first_chunk[blockIdx.x]; chunk < systems.first_chunk[blockIdx.x + 1]; ++chunk)
            sum += partial[int64_t{chunk} * kTotalCount + column];
    totals[int64_t{blockIdx.x} * kTotalCount + column] = sum;
}

__global__ void stress_kernel(const double* virial, double volume, double* stress) {
    mlff::gpu::await_predecessor();
    const int kVoigt[6] = {0, 4, 8, 5, 2, 1};
    const int k = static_cast<int>(threadIdx.x);
    if (k < 6) stress[k] = -virial[kVoigt[k]] / volume;
}

}  // namespace

void sum_over_systems(const AtomResults& atoms, double* partial, double* totals, cudaStream_t stream) {
    const SystemsView& systems = atoms.systems;
    if (systems.chunk_count > 0)
        launch("sums of energies", sum_chunks_kernel, systems.chunk_count, atoms.virials ? 32 * kTotalCount : 32,
               stream, atoms, partial);
    const int column_count = atoms.virials ? kTotalCount : 1;
    launch("totals", sum_systems_kernel, systems.system_count, 32, stream, systems, column_count,
           static_cast<const double*>(partial), totals);
}

void write_stress(const double* virial, double volume, double* stress, cudaStream_t stream) {
    launch("stress", stress_kernel, 1, 32, stream, virial, volume, stress);
}

}  // namespace mlff::gpu
