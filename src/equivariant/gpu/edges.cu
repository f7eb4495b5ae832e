// SPDX-License-Identifier: MIT
#include "equivariant/gpu/edges.h"

#include "equivariant/edge_harmonics.h"
#include "gpu/engine/warp.h"
#include "gpu/runtime/cuda_check.h"

namespace mlff::equivariant::gpu {
namespace {

using mlff::gpu::launch;

// Harmonics are those of the vector from sender to receiver. The vector of our edges is the opposite.
__device__ Vec3 direction(const EdgeGeometry& geometry, const double* distance, int64_t edge) {
    const double scale = -1 / distance[edge];
    const double* v = geometry.vector + 3 * edge;
    return {scale * v[0], scale * v[1], scale * v[2]};
}

struct ValueAndSlope {
    double value, slope;
};

__device__ double whole_power(double x, int exponent) {
    double power = 1;
    for (int i = 0; i < exponent; ++i) power *= x;
    return power;
}

// Half of the energy of a pair, and its slope; see PairRepulsion.
__device__ ValueAndSlope pair_repulsion(const RepulsionView& repulsion, int sender_element, int receiver_element,
                                        double r) {
    const double kDecay[4] = {3.2, 0.9423, 0.4028, 0.2016};
    const double z1 = repulsion.atomic_numbers[sender_element], z2 = repulsion.atomic_numbers[receiver_element];
    const double radius = repulsion.radii[sender_element] + repulsion.radii[receiver_element];
    if (r >= radius) return {0, 0};
    const double length = repulsion.prefactor * 0.529 / (pow(z1, repulsion.exponent) + pow(z2, repulsion.exponent));
    const double p = repulsion.cutoff_exponent, t = r / radius, power = whole_power(t, repulsion.cutoff_exponent - 1);
    const double cutoff =
        1 - (p + 1) * (p + 2) / 2 * power * t + p * (p + 2) * power * t * t - p * (p + 1) / 2 * power * t * t * t;
    const double cutoff_slope = p * (p + 1) * (p + 2) / 2 * power * (-1 + 2 * t - t * t) / radius;
    double phi = 0, phi_slope = 0;
    for (int k = 0; k < 4; ++k) {
        const double term = repulsion.coefficients[k] * exp(-kDecay[k] * r / length);
        phi += term;
        phi_slope -= kDecay[k] / length * term;
    }
    const double coulomb = 0.5 * 14.3996 * z1 * z2 / r;
    return {coulomb * phi * cutoff, coulomb * (phi_slope * cutoff + phi * cutoff_slope - phi * cutoff / r)};
}

// Launch of all kernels: one warp per atom; lanes take its edges in turn. Those with `WarpsPerAtom` have as many warps
// per atom, which take 32 of its edges in turn.
template <int WarpsPerAtom>
struct WarpsOfAtom {
    int64_t atom;
    int part, lane;
    __device__ WarpsOfAtom()
        : atom((blockIdx.x * int64_t{kBlockThreads} + threadIdx.x) / (32 * WarpsPerAtom)),
          part(static_cast<int>(threadIdx.x) / 32 % WarpsPerAtom),
          lane(static_cast<int>(threadIdx.x) % 32) {}
};
constexpr int kWarpsOfFewAtoms = 4;
bool are_few(int64_t atom_count) { return atom_count <= 1024; }

// Moves the harmonics of 32 edges between lanes, where each lane has those of one edge, and memory, in coalesced
// accesses: half a warp moves those of one edge. For the degrees that are written out.
template <class Real>
struct StagedHarmonics {
    static constexpr int kMost = harmonic_count(edge_harmonics::kWrittenOutDegree);
    static constexpr int kStride = kMost + 1;  // odd, so that lanes use different banks
    static constexpr int kSize = 32 * kStride;
    static_assert(kMost <= 16);

    Real* rows;

    __device__ Real* of(int lane) const { return rows + lane * kStride; }
    __device__ void write(int lane, int edge_count, int harmonic_count, Real* to) const {
        __syncwarp();
        const int harmonic = lane % 16;
        if (harmonic < harmonic_count)
            for (int e = lane / 16; e < edge_count; e += 2)
                to[e * harmonic_count + harmonic] = rows[e * kStride + harmonic];
        __syncwarp();
    }
    __device__ void read(int lane, int edge_count, int harmonic_count, const Real* from) const {
        __syncwarp();
        const int harmonic = lane % 16;
        if (harmonic < harmonic_count) {
#pragma unroll 4
            for (int e = lane / 16; e < edge_count; e += 2)
                rows[e * kStride + harmonic] = from[e * harmonic_count + harmonic];
        }
        __syncwarp();
    }
};

// No race: all threads write the same value.
__device__ __forceinline__ void check_length(const ShortEdges& short_edges, double distance) {
    if (!(distance > short_edges.lowest)) *short_edges.is_shorter = 1;
}

template <class Real, int WarpsPerAtom>
__global__ void __launch_bounds__(kBlockThreads)
    harmonics_kernel(EdgesView<Real> edges, EdgeGeometry geometry, ShortEdges short_edges, Real* harmonics) {
    mlff::gpu::await_predecessor();
    __shared__ Real room[kWarps][StagedHarmonics<Real>::kSize];
    const WarpsOfAtom<WarpsPerAtom> at;
    if (at.atom >= edges.atom_count) return;
    const StagedHarmonics<Real> staged = {room[threadIdx.x / 32]};
    const int64_t end = edges.first[at.atom + 1];
    for (int64_t begin = edges.first[at.atom] + 32 * at.part; begin < end; begin += 32 * WarpsPerAtom) {
        const int count = static_cast<int>(min(int64_t{32}, end - begin));
        if (at.lane < count) {
            check_length(short_edges, edges.distance[begin + at.lane]);
            compute_edge_harmonics(min(geometry.max_degree, edge_harmonics::kWrittenOutDegree),
                                   direction(geometry, edges.distance, begin + at.lane), staged.of(at.lane));
        }
        staged.write(at.lane, count, edges.harmonic_count, harmonics + begin * edges.harmonic_count);
    }
}

// For higher degrees.
template <class Real>
__global__ void __launch_bounds__(kBlockThreads)
    any_harmonics_kernel(EdgesView<Real> edges, EdgeGeometry geometry, ShortEdges short_edges, Real* harmonics) {
    mlff::gpu::await_predecessor();
    const WarpOfAtom at;
    if (at.atom >= edges.atom_count) return;
    for (int64_t edge = edges.first[at.atom] + at.lane; edge < edges.first[at.atom + 1]; edge += 32) {
        check_length(short_edges, edges.distance[edge]);
        compute_edge_harmonics(geometry.max_degree, direction(geometry, edges.distance, edge),
                               harmonics + edge * edges.harmonic_count);
    }
}

template <class Real>
__global__ void __launch_bounds__(kBlockThreads)
    repulsion_kernel(EdgesView<Real> edges, RepulsionView repulsion, double* energies) {
    mlff::gpu::await_predecessor();
    const WarpOfAtom at;
    if (at.atom >= edges.atom_count) return;
    double sum = 0;
    for (int64_t edge = edges.first[at.atom] + at.lane; edge < edges.first[at.atom + 1]; edge += 32)
        sum +=
            pair_repulsion(repulsion, edges.elements[edges.sender[edge]], edges.elements[at.atom], edges.distance[edge])
                .value;
    sum = sum_over_warp(sum);
    if (at.lane == 0) energies[at.atom] = sum;
}

// The gradient by the vector of one edge. `degree` is geometry.max_degree, in some calls with an upper bound that the
// compiler can use.
template <class Real>
__device__ __forceinline__ Vec3 reverse_edge(const EdgesView<Real>& edges, const EdgeGeometry& geometry,
                                             const RepulsionView& repulsion, int64_t atom, int64_t edge, int degree,
                                             double slope, const Real* harmonics_gradient) {
    const Vec3 n = direction(geometry, edges.distance, edge);
    const double r = edges.distance[edge];
    if (repulsion.is_there)
        slope += repulsion.scale *
                 pair_repulsion(repulsion, edges.elements[atom], edges.elements[edges.sender[edge]], r).slope;
    const Vec3 turn = reverse_edge_harmonics(degree, n, r, harmonics_gradient);
    return {-(slope * n[0] + turn[0]), -(slope * n[1] + turn[1]), -(slope * n[2] + turn[2])};
}

template <class Real, int WarpsPerAtom>
__global__ void __launch_bounds__(kBlockThreads)
    reverse_edges_kernel(EdgesView<Real> edges, EdgeGeometry geometry, EdgeGradientsView<Real> gradients,
                         RepulsionView repulsion, double* vector_gradient) {
    mlff::gpu::await_predecessor();
    __shared__ Real room[kWarps][StagedHarmonics<Real>::kSize];
    __shared__ double vector_room[kWarps][3 * 32];
    const WarpsOfAtom<WarpsPerAtom> at;
    if (at.atom >= edges.atom_count) return;
    const StagedHarmonics<Real> staged = {room[threadIdx.x / 32]};
    double* vectors = vector_room[threadIdx.x / 32];
    const int64_t end = edges.first[at.atom + 1];
    for (int64_t begin = edges.first[at.atom] + 32 * at.part; begin < end; begin += 32 * WarpsPerAtom) {
        const int count = static_cast<int>(min(int64_t{32}, end - begin));
        staged.read(at.lane, count, edges.harmonic_count, gradients.harmonics + begin * edges.harmonic_count);
        if (at.lane < count) {
            const Vec3 gradient = reverse_edge(edges, geometry, repulsion, at.atom, begin + at.lane,
                                               min(geometry.max_degree, edge_harmonics::kWrittenOutDegree),
                                               gradients.distance[begin + at.lane], staged.of(at.lane));
            for (int k = 0; k < 3; ++k) vectors[3 * at.lane + k] = gradient[k];
        }
        __syncwarp();
        for (int i = at.lane; i < 3 * count; i += 32) vector_gradient[3 * begin + i] = vectors[i];
    }
}

// For higher degrees.
template <class Real>
__global__ void __launch_bounds__(kBlockThreads)
    reverse_any_edges_kernel(EdgesView<Real> edges, EdgeGeometry geometry, EdgeGradientsView<Real> gradients,
                             RepulsionView repulsion, double* vector_gradient) {
    mlff::gpu::await_predecessor();
    const WarpOfAtom at;
    if (at.atom >= edges.atom_count) return;
    for (int64_t edge = edges.first[at.atom] + at.lane; edge < edges.first[at.atom + 1]; edge += 32) {
        const Vec3 gradient = reverse_edge(edges, geometry, repulsion, at.atom, edge, geometry.max_degree,
                                           gradients.distance[edge], gradients.harmonics + edge * edges.harmonic_count);
        for (int k = 0; k < 3; ++k) vector_gradient[3 * edge + k] = gradient[k];
    }
}

}  // namespace

template <class Real>
void compute_harmonics(const EdgesView<Real>& edges, const EdgeGeometry& geometry, const ShortEdges& short_edges,
                       Real* harmonics, cudaStream_t stream) {
    if (edges.atom_count == 0) return;
    const bool is_any = geometry.max_degree > edge_harmonics::kWrittenOutDegree,
               is_few = !is_any && are_few(edges.atom_count);
    const auto kernel = is_any   ? any_harmonics_kernel<Real>
                        : is_few ? harmonics_kernel<Real, kWarpsOfFewAtoms>
                                 : harmonics_kernel<Real, 1>;
    launch("harmonics", kernel, blocks_of_atoms(edges.atom_count * (is_few ? kWarpsOfFewAtoms : 1)), kBlockThreads,
           stream, edges, geometry, short_edges, harmonics);
}
template <class Real>
void compute_repulsion(const EdgesView<Real>& edges, const RepulsionView& repulsion, double* energies,
                       cudaStream_t stream) {
    if (edges.atom_count > 0)
        launch("pair repulsion", repulsion_kernel<Real>, blocks_of_atoms(edges.atom_count), kBlockThreads, stream,
               edges, repulsion, energies);
}
template <class Real>
void reverse_edges(const EdgesView<Real>& edges, const EdgeGeometry& geometry, const EdgeGradientsView<Real>& gradients,
                   const RepulsionView& repulsion, double* vector_gradient, cudaStream_t stream) {
    if (edges.atom_count == 0) return;
    const bool is_any = geometry.max_degree > edge_harmonics::kWrittenOutDegree,
               is_few = !is_any && are_few(edges.atom_count);
    const auto kernel = is_any   ? reverse_any_edges_kernel<Real>
                        : is_few ? reverse_edges_kernel<Real, kWarpsOfFewAtoms>
                                 : reverse_edges_kernel<Real, 1>;
    launch("reversing edges", kernel, blocks_of_atoms(edges.atom_count * (is_few ? kWarpsOfFewAtoms : 1)),
           kBlockThreads, stream, edges, geometry, gradients, repulsion, vector_gradient);
}

#define MLFF_INSTANTIATE(Real)                                                                                     \
    template void compute_harmonics<Real>(const EdgesView<Real>&, const EdgeGeometry&, const ShortEdges&, Real*,   \
                                          cudaStream_t);                                                           \
    template void compute_repulsion<Real>(const EdgesView<Real>&, const RepulsionView&, double*, cudaStream_t);    \
    template void reverse_edges<Real>(const EdgesView<Real>&, const EdgeGeometry&, const EdgeGradientsView<Real>&, \
                                      const RepulsionView&, double*, cudaStream_t);
MLFF_INSTANTIATE(float)
MLFF_INSTANTIATE(double)
#undef MLFF_INSTANTIATE

}  // namespace mlff::equivariant::gpu
