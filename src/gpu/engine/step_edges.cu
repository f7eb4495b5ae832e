// SPDX-License-Identifier: MIT
#include "gpu/engine/step_edges.h"

#include "gpu/engine/warp.h"
#include "gpu/runtime/cuda_check.h"

namespace mlff::gpu {
namespace {

// Launch: one warp per atom; lanes take its edges in turn.
//
// The gradient of an edge acts on its two atoms with opposite signs. Each atom gets half of the virial.
__global__ void __launch_bounds__(kBlockThreads)
    gather_kernel(StepEdges edges, int32_t owned_count, const double* vector_gradient, double* forces,
                  double* virials) {
    mlff::gpu::await_predecessor();
    const WarpOfAtom at;
    if (at.atom >= edges.atom_count) return;
    const int64_t owned_end = edges.first[owned_count];
    double force[3] = {}, virial[6] = {};  // xx xy xz yy yz zz
    for (int64_t edge = edges.first[at.atom] + at.lane; edge < edges.first[at.atom + 1]; edge += 32) {
        const int64_t reverse = edges.reverse[edge];
        const double* own = vector_gradient + 3 * edge;
        const double* other = vector_gradient + 3 * reverse;
        const double* v = edges.vector + 3 * edge;
        double difference[3];  // minus, because the reverse edge has the opposite vector
        for (int k = 0; k < 3; ++k) {
            difference[k] = (edge < owned_end ? own[k] : 0.0) - (reverse < owned_end ? other[k] : 0.0);
            force[k] += difference[k];
        }
        int next = 0;
        for (int i = 0; i < 3; ++i)
            for (int j = i; j < 3; ++j) virial[next++] -= 0.25 * (v[i] * difference[j] + v[j] * difference[i]);
    }
    for (int k = 0; k < 3; ++k) force[k] = sum_over_warp(force[k]);
    for (int k = 0; k < 6; ++k) virial[k] = sum_over_warp(virial[k]);
    if (at.lane != 0) return;
    if (forces)
        for (int k = 0; k < 3; ++k) forces[3 * at.atom + k] = force[k];
    if (!virials) return;
    const int kFull[9] = {0, 1, 2, 1, 3, 4, 2, 4, 5};
    for (int k = 0; k < 9; ++k) virials[9 * at.atom + k] = virial[kFull[k]];
}

}  // namespace

void gather_forces(const StepEdges& edges, int32_t owned_count, const double* vector_gradient, double* forces,
                   double* virials, cudaStream_t stream) {
    if (edges.atom_count > 0)
        launch("forces", gather_kernel, blocks_of_atoms(edges.atom_count), kBlockThreads, stream, edges, owned_count,
               vector_gradient, forces, virials);
}

}  // namespace mlff::gpu
