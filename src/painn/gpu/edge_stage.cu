// SPDX-License-Identifier: MIT
#include "painn/gpu/edge_stage.h"

#include "gpu/engine/warp.h"
#include "gpu/runtime/cuda_check.h"
#include "painn/functions/near_field.h"
#include "painn/gpu/packed_filter.h"
#include "painn/gpu/sizes.h"

namespace mlff::painn::gpu {
namespace {

using namespace mlff::gpu;

constexpr double kPi = 3.14159265358979323846;

// Sine and cosine of pi a. Whole periods are subtracted in double precision.
__device__ __forceinline__ void sine_and_cosine(double a, float& sine, float& cosine) {
    const auto rest = static_cast<float>(a - 2 * rint(0.5 * a));
    sine = sinpif(rest);
    cosine = cospif(rest);
}
__device__ __forceinline__ void sine_and_cosine(double a, double& sine, double& cosine) {
    sine = sinpi(a);
    cosine = cospi(a);
}

// Stores group number `group` of `count` groups.
__device__ __forceinline__ void store_group(const double (&numbers)[4], double, int, int, Four<double>* to) {
    *to = {{numbers[0], numbers[1], numbers[2], numbers[3]}};
}
__device__ __forceinline__ void store_group(const float (&numbers)[4], float scale, int group, int count, uint4* to) {
    const float scaled[4] = {scale * numbers[0], scale * numbers[1], scale * numbers[2], scale * numbers[3]};
    if (group < count / 4 * 4)
        store_step(scaled, to);
    else
        store_half_step(scaled, to);
}
__device__ __forceinline__ void store_group(const float (&numbers)[4], float scale, int, int, uint2* to) {
    *to = make_uint2(pair_of_halves(scale * numbers[0], scale * numbers[1]),
                     pair_of_halves(scale * numbers[2], scale * numbers[3]));
}

// Launch: blocks of kBlockThreads, with ThreadsOfAtom threads per atom. The threads of an atom first take its edges in
// turn, then the groups of functions of all its edges, so that neighbouring threads write neighbouring groups.
template <class Stored, int ThreadsOfAtom>
__global__ void __launch_bounds__(kBlockThreads)
    edges_kernel(const __grid_constant__ EdgeStage stage, EdgeFunctions<Stored> functions) {
    mlff::gpu::await_predecessor();
    using Real = RealOf<Stored>;
    __shared__ double partial[kWarps];
    const int64_t atom = (blockIdx.x * int64_t{kBlockThreads} + threadIdx.x) / ThreadsOfAtom;
    const int own = static_cast<int>(threadIdx.x) % ThreadsOfAtom;
    if (atom >= stage.edges.atom_count) return;
    const int64_t begin = stage.edges.first[atom];
    const int edge_count = static_cast<int>(stage.edges.first[atom + 1] - begin);
    const double* distances = stage.edges.distance + begin;

    double energy = 0;
    for (int e = own; e < edge_count; e += ThreadsOfAtom) {
        const int64_t edge = begin + e;
        const double d = distances[e], inverse = 1 / d;
        if (!(d > 0)) *stage.has_short_edge = 1;  // no race: all threads write the same value
        double direction[3];
        for (int k = 0; k < 3; ++k) direction[k] = stage.edges.vector[3 * edge + k] * inverse;
        for (int k = 0; k < 3; ++k) functions.direction[4 * edge + k] = static_cast<Real>(direction[k]);
        functions.direction[4 * edge + 3] = static_cast<Real>(inverse);
        RepulsionValue repulsion;  // of the pair; an edge has half of it
        if (stage.repulsion) {
            const int element = stage.edges.elements[atom], other = stage.edges.elements[stage.edges.sender[edge]];
            repulsion = pair_repulsion(stage.repulsion[element * stage.element_count + other], d);
        }
        energy += 0.5 * repulsion.energy;
        if (stage.vector_gradient)
            for (int k = 0; k < 3; ++k) stage.vector_gradient[3 * edge + k] = 0.5 * repulsion.slope * direction[k];
    }
    energy = ThreadsOfAtom == 32 ? sum_over_warp(energy) : sum_over_block(energy, partial);
    if (own == 0) stage.energies[atom] = energy;

    const int count = functions.group_count;
    const double inverse_cutoff = 1 / stage.cutoff;
    const auto wave = static_cast<Real>(kPi * inverse_cutoff);
    for (int i = own; i < edge_count * count; i += ThreadsOfAtom) {
        const int e = i / count, group = i % count, first = 4 * group + 1;  // the basis counts from 1
        SeenDistance seen = {distances[e], 1};
        if (stage.closest)
            seen = seen_distance(stage.closest[stage.edges.elements[atom] * stage.element_count +
                                               stage.edges.elements[stage.edges.sender[begin + e]]],
                                 distances[e]);
        const double t = seen.value * inverse_cutoff;
        const Real inverse = 1 / static_cast<Real>(seen.value), seen_slope = static_cast<Real>(seen.slope);
        Real step_sine, step_cosine, sine, cosine;
        sine_and_cosine(t, step_sine, step_cosine);
        sine_and_cosine(first * t, sine, cosine);
        const Real fade = (1 + step_cosine) / 2, fade_slope = -wave / 2 * step_sine;
        Real value[4] = {}, slope[4] = {};
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            const int n = first + k;
            if (n <= stage.radial_count) {
                const Real basis = sine * inverse;
                value[k] = basis * fade;
                slope[k] = (static_cast<Real>(n) * wave * cosine - basis) * inverse * fade + basis * fade_slope;
            } else if (n == stage.radial_count + 1) {
                value[k] = fade;
                slope[k] = fade_slope;
            }
            const Real next_sine = sine * step_cosine + cosine * step_sine;
            cosine = cosine * step_cosine - sine * step_sine;
            sine = next_sine;
        }
#pragma unroll
        for (int k = 0; k < 4; ++k) slope[k] *= seen_slope;
        store_group(value, static_cast<Real>(kValueScale), group, count, functions.value + begin * count + i);
        if (functions.slope) store_group(slope, Real{1}, group, count, functions.slope + begin * count + i);
    }
}

}  // namespace

template <class Stored>
void compute_edges(const EdgeStage& stage, const EdgeFunctions<Stored>& functions, cudaStream_t stream) {
    if (stage.edges.atom_count == 0) return;
    const bool is_few = stage.edges.atom_count <= few_atoms_for_messages();
    launch("functions of edges", is_few ? edges_kernel<Stored, kBlockThreads> : edges_kernel<Stored, 32>,
           is_few ? int64_t{stage.edges.atom_count} : blocks_of_atoms(stage.edges.atom_count), kBlockThreads, stream,
           stage, functions);
}

template void compute_edges<float>(const EdgeStage&, const EdgeFunctions<float>&, cudaStream_t);
template void compute_edges<__half>(const EdgeStage&, const EdgeFunctions<__half>&, cudaStream_t);
template void compute_edges<double>(const EdgeStage&, const EdgeFunctions<double>&, cudaStream_t);

}  // namespace mlff::painn::gpu
