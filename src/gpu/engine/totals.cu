// SPDX-License-Identifier: MIT
#include "gpu/engine/totals.h"

#include "gpu/engine/warp.h"
#include "gpu/runtime/cuda_check.h"

namespace mlff::gpu {
namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads)
    finish_energies_kernel(int64_t atom_count, EnergyView view, double* energies) {
    mlff::gpu::await_predecessor();
    const int64_t atom = blockIdx.x * int64_t{kThreads} + threadIdx.x;
    if (atom < atom_count)
        energies[atom] = view.of_element[view.elements[atom]].alone + (view.scale * energies[atom] + view.shift);
}

// Launch: one block per chunk, one warp per column.
__global__ void __launch_bounds__(32 * kTotalCount)
    sum_chunks_kernel(SystemsView systems, EnergyView view, const double* energies, const double* virials,
                      double* partial) {
    mlff::gpu::await_predecessor();
    const AtomChunk chunk = systems.chunks[blockIdx.x];
    const int column = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
    double sum = 0;
    const int end = column == 0 ? min(chunk.end, systems.owned_count) : chunk.end;
    for (int atom = chunk.begin + lane; atom < end; atom += 32)
        sum += column == 0 ? energies[atom] + view.of_element[view.elements[atom]].embedding
                           : virials[9 * int64_t{atom} + (column - 1)];
    sum = sum_over_warp(sum);
    if (lane == 0) partial[int64_t{blockIdx.x} * kTotalCount + column] = sum;
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

void finish_energies(int64_t atom_count, const EnergyView& view, double* energies, cudaStream_t stream) {
    if (atom_count > 0)
        launch("energies", finish_energies_kernel, (atom_count + kThreads - 1) / kThreads, kThreads, stream, atom_count,
               view, energies);
}

void sum_over_systems(const SystemsView& systems, const EnergyView& view, const double* energies, const double* virials,
                      double* partial, double* totals, cudaStream_t stream) {
    if (systems.chunk_count > 0)
        launch("sums of energies", sum_chunks_kernel, systems.chunk_count, virials ? 32 * kTotalCount : 32, stream,
               systems, view, energies, virials, partial);
    const int column_count = virials ? kTotalCount : 1;
    launch("totals", sum_systems_kernel, systems.system_count, 32, stream, systems, column_count,
           static_cast<const double*>(partial), totals);
}

void write_stress(const double* virial, double volume, double* stress, cudaStream_t stream) {
    launch("stress", stress_kernel, 1, 32, stream, virial, volume, stress);
}

}  // namespace mlff::gpu
