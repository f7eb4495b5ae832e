// SPDX-License-Identifier: MIT
#include "painn/cuda/edge_stage.h"

#include "cuda_engine/radial_product.h"
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

__device__ __forceinline__ void store_group(const double (&numbers)[4], double, FourDoubles* to) { *to = {{numbers[0], numbers[1], numbers[2], numbers[3]}}; }
__device__ __forceinline__ void store_group(const float (&numbers)[4], float scale, uint4* to) {
    const float scaled[4] = {scale * numbers[0], scale * numbers[1], scale * numbers[2], scale * numbers[3]};
    RadialProduct::store_functions(scaled, to);
}

// Launch: a warp for each atom. A lane first has every 32nd edge, then every 32nd group of functions of all edges, which are written next to each other.
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

    const int count = functions.group_count;
    const double inverse_cutoff = 1 / stage.cutoff;
    const auto wave = static_cast<Real>(kPi * inverse_cutoff);
    for (int i = at.lane; i < edge_count * count; i += 32) {
        const int e = i / count, first = 4 * (i % count) + 1;  // the basis counts from 1
        const double t = distances[e] * inverse_cutoff;
        const auto inverse = static_cast<Real>(1 / distances[e]);
        Real fade_sine, fade_cosine;
        sine_and_cosine(t, fade_sine, fade_cosine);
        const Real fade = (1 + fade_cosine) / 2, fade_slope = -wave / 2 * fade_sine;
        Real value[4] = {}, slope[4] = {};
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            const int n = first + k;
            if (n <= stage.radial_count) {
                Real sine, cosine;
                sine_and_cosine(n * t, sine, cosine);
                const Real basis = sine * inverse;
                value[k] = basis * fade;
                slope[k] = (static_cast<Real>(n) * wave * cosine - basis) * inverse * fade + basis * fade_slope;
            } else if (n == stage.radial_count + 1) {
                value[k] = fade;
                slope[k] = fade_slope;
            }
        }
        store_group(value, static_cast<Real>(kValueScale), functions.value + begin * count + i);
        if (functions.slope) store_group(slope, Real{1}, functions.slope + begin * count + i);
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
