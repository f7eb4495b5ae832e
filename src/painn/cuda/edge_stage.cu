// SPDX-License-Identifier: MIT
#include "painn/cuda/edge_stage.h"

#include "cuda_engine/warp.h"
#include "device/cuda_check.h"

namespace mlff::painn::cuda {
namespace {

using namespace mlff::cuda;

constexpr double kPi = 3.14159265358979323846;

// Sine and cosine of pi a. The whole turns are taken off in double precision.
__device__ __forceinline__ void sine_and_cosine(double a, float& sine, float& cosine) {
    const auto rest = static_cast<float>(a - 2 * rint(0.5 * a));
    sine = sinpif(rest);
    cosine = cospif(rest);
}
__device__ __forceinline__ void sine_and_cosine(double a, double& sine, double& cosine) {
    sine = sinpi(a);
    cosine = cospi(a);
}

// Launch: a warp for each atom. A lane first has every 32nd edge, then every 32nd function of all edges, which are written next to each other.
template <class Real>
__global__ void __launch_bounds__(kBlockThreads) edges_kernel(const __grid_constant__ EdgeStage stage, EdgeFunctions<Real> functions) {
    mlff::cuda::await_predecessor();
    const WarpOfAtom at;
    if (at.atom >= stage.edges.atom_count) return;
    const int64_t begin = stage.edges.first[at.atom];
    const int edge_count = static_cast<int>(stage.edges.first[at.atom + 1] - begin);
    const double* distances = stage.edges.distance + begin;

    double energy = 0;
    for (int e = at.lane; e < edge_count; e += 32) {
        const int64_t edge = begin + e;
        const double d = distances[e], inverse = 1 / d;
        if (!(d > 0)) *stage.has_short_edge = 1;  // all that write, write the same
        double direction[3];
        for (int k = 0; k < 3; ++k) direction[k] = stage.edges.vector[3 * edge + k] * inverse;
        for (int k = 0; k < 3; ++k) functions.direction[4 * edge + k] = static_cast<Real>(direction[k]);
        functions.direction[4 * edge + 3] = static_cast<Real>(inverse);
        ValueAndSlope repulsion;
        if (stage.repulsion) {
            const int own = stage.edges.elements[at.atom], other = stage.edges.elements[stage.edges.sender[edge]];
            repulsion = half_repulsion(stage.repulsion[own * stage.element_count + other], d);
        }
        energy += repulsion.value;
        if (stage.vector_gradient)
            for (int k = 0; k < 3; ++k) stage.vector_gradient[3 * edge + k] = repulsion.slope * direction[k];
    }
    energy = sum_over_warp(energy);
    if (at.lane == 0) stage.energies[at.atom] = energy;

    const int count = functions.function_count;
    const double inverse_cutoff = 1 / stage.cutoff;
    for (int i = at.lane; i < edge_count * count; i += 32) {
        const int e = i / count, n = i % count + 1;  // the basis counts from 1
        const double t = distances[e] * inverse_cutoff;
        const auto inverse = static_cast<Real>(1 / distances[e]), wave = static_cast<Real>(kPi * inverse_cutoff);
        Real sine, cosine, fade_sine, fade_cosine;
        sine_and_cosine(n * t, sine, cosine);
        sine_and_cosine(t, fade_sine, fade_cosine);
        const Real fade = (1 + fade_cosine) / 2, fade_slope = -wave / 2 * fade_sine;
        Real value = 0, slope = 0;
        if (n <= stage.radial_count) {
            const Real basis = sine * inverse;
            value = basis * fade;
            slope = (static_cast<Real>(n) * wave * cosine - basis) * inverse * fade + basis * fade_slope;
        } else if (n == stage.radial_count + 1) {
            value = fade;
            slope = fade_slope;
        }
        functions.value[begin * count + i] = value;
        if (functions.slope) functions.slope[begin * count + i] = slope;
    }
}

}  // namespace

template <class Real>
void compute_edges(const EdgeStage& stage, const EdgeFunctions<Real>& functions, cudaStream_t stream) {
    if (stage.edges.atom_count > 0)
        launch("functions of edges", edges_kernel<Real>, blocks_of_atoms(stage.edges.atom_count), kBlockThreads, stream, stage, functions);
}

template void compute_edges<float>(const EdgeStage&, const EdgeFunctions<float>&, cudaStream_t);
template void compute_edges<double>(const EdgeStage&, const EdgeFunctions<double>&, cudaStream_t);

}  // namespace mlff::painn::cuda
