// SPDX-License-Identifier: MIT
#include "gpu/engine/shorter_edges.h"

#include "gpu/engine/step_evaluator.h"
#include "gpu/engine/warp.h"
#include "gpu/runtime/cuda_check.h"

namespace mlff::gpu {
namespace {

struct Shorter {
    StepEdges from;
    double squared_cutoff = 0;
    int32_t* count = nullptr;      // [atom_count + 1]; the last is 0
    int64_t* first = nullptr;      // [atom_count + 1]
    int64_t* new_index = nullptr;  // [edge of `from`]; only set for edges within the cutoff
    int32_t* sender = nullptr;     // [edge], as are the following
    double* vector = nullptr;      // [edge][3]
    double* distance = nullptr;
    int64_t* reverse = nullptr;

    // Rounds as the neighbour search does, without fused multiply-add, so that both make the same decision.
    __device__ bool is_within(int64_t edge) const {
        const double* v = from.vector + 3 * edge;
        return __dadd_rn(__dadd_rn(__dmul_rn(v[0], v[0]), __dmul_rn(v[1], v[1])), __dmul_rn(v[2], v[2])) <
               squared_cutoff;
    }
};

// Launch of all three kernels: one thread per atom; the first kernel has one thread more.
__global__ void __launch_bounds__(kBlockThreads) count_shorter_edges(Shorter shorter) {
    mlff::gpu::await_predecessor();
    const int64_t atom = blockIdx.x * int64_t{kBlockThreads} + threadIdx.x;
    if (atom > shorter.from.atom_count) return;
    int32_t count = 0;
    if (atom < shorter.from.atom_count)
        for (int64_t edge = shorter.from.first[atom]; edge < shorter.from.first[atom + 1]; ++edge)
            count += shorter.is_within(edge) ? 1 : 0;
    shorter.count[atom] = count;
}

__global__ void __launch_bounds__(kBlockThreads) copy_shorter_edges(Shorter shorter) {
    mlff::gpu::await_predecessor();
    const int64_t atom = blockIdx.x * int64_t{kBlockThreads} + threadIdx.x;
    if (atom >= shorter.from.atom_count) return;
    int64_t next = shorter.first[atom];
    for (int64_t edge = shorter.from.first[atom]; edge < shorter.from.first[atom + 1]; ++edge) {
        if (!shorter.is_within(edge)) continue;
        shorter.new_index[edge] = next;
        shorter.reverse[next] = shorter.from.reverse[edge];
        shorter.sender[next] = shorter.from.sender[edge];
        for (int k = 0; k < 3; ++k) shorter.vector[3 * next + k] = shorter.from.vector[3 * edge + k];
        shorter.distance[next++] = shorter.from.distance[edge];
    }
}

// An edge and its reverse have the same length, so both are within the cutoff or neither is.
__global__ void __launch_bounds__(kBlockThreads) renumber_reverse_edges(Shorter shorter) {
    mlff::gpu::await_predecessor();
    const int64_t atom = blockIdx.x * int64_t{kBlockThreads} + threadIdx.x;
    if (atom >= shorter.from.atom_count) return;
    for (int64_t edge = shorter.first[atom]; edge < shorter.first[atom + 1]; ++edge)
        shorter.reverse[edge] = shorter.new_index[shorter.reverse[edge]];
}

}  // namespace

void ShorterStepEdges::list_buffers(BufferList& list, int64_t atom_count, int64_t edge_count) {
    constexpr const char* kPurpose = "the edges";
    list.add(count_, atom_count + 1, kPurpose);
    list.add(first_, atom_count + 1, kPurpose);
    list.add(new_index_, edge_count, kPurpose);
    list.add(reverse_, edge_count, kPurpose);
    list.add(sender_, edge_count, kPurpose);
    list.add(vector_, 3 * edge_count, kPurpose);
    list.add(distance_, edge_count, kPurpose);
}

StepEdges ShorterStepEdges::enqueue(const StepEdges& edges, double cutoff, cudaStream_t stream) {
    const Shorter shorter = {edges,          cutoff * cutoff, count_.data(),    first_.data(),  new_index_.data(),
                             sender_.data(), vector_.data(),  distance_.data(), reverse_.data()};
    const int64_t atoms = edges.atom_count;
    const auto blocks = [](int64_t threads) { return (threads + kBlockThreads - 1) / kBlockThreads; };
    launch("counting edges", count_shorter_edges, blocks(atoms + 1), kBlockThreads, stream, shorter);
    scan_.run(count_.data(), atoms + 1, first_.data(), stream);
    if (atoms > 0) {
        launch("copying edges", copy_shorter_edges, blocks(atoms), kBlockThreads, stream, shorter);
        launch("reverse edges", renumber_reverse_edges, blocks(atoms), kBlockThreads, stream, shorter);
    }
    StepEdges found = edges;
    found.first = first_.data();
    found.sender = sender_.data();
    found.vector = vector_.data();
    found.distance = distance_.data();
    found.reverse = reverse_.data();
    return found;
}

}  // namespace mlff::gpu
