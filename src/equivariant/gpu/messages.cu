// SPDX-License-Identifier: MIT
#include "equivariant/gpu/messages.h"

#include <algorithm>

#include "equivariant/gpu/path_shapes.h"
#include "gpu/engine/instructions.h"
#include "gpu/engine/warp.h"
#include "gpu/runtime/cuda_check.h"

namespace mlff::equivariant::gpu {
namespace {

using mlff::gpu::launch;
using mlff::gpu::LaunchShape;

// A chunk of the edges of the block's atom, in shared memory.
template <class Real>
struct Chunk {
    SplinePoint<Real>* points;  // [edge]
    int32_t* others;            // [edge]: the atom at the other end
    Real* shares;               // [edge][share_count]
    Real* shares_gradient;      // the same; reverse only
    Real* slopes;               // [edge]; reverse only
    Real* features_gradient;    // [warp][component][stride] of one path; reverse only
};

template <class Real>
__device__ Chunk<Real> lay_out_chunk(const typename DeviceMessages<Real>::View& view) {
    Chunk<Real> chunk;
    chunk.points = reinterpret_cast<SplinePoint<Real>*>(mlff::gpu::launched_shared_memory());
    chunk.shares = reinterpret_cast<Real*>(chunk.points + view.edges_per_chunk);
    chunk.shares_gradient = chunk.shares + view.edges_per_chunk * view.share_count;
    chunk.slopes = chunk.shares_gradient + view.edges_per_chunk * view.share_count;
    chunk.features_gradient = chunk.slopes + view.edges_per_chunk;
    chunk.others = reinterpret_cast<int32_t*>(chunk.features_gradient + kWarps * view.most_feature_rows);
    return chunk;
}
// The forward pass has neither gradients nor slopes.
template <class Real>
__device__ Chunk<Real> lay_out_forward_chunk(const typename DeviceMessages<Real>::View& view) {
    Chunk<Real> chunk = lay_out_chunk<Real>(view);
    chunk.others = reinterpret_cast<int32_t*>(chunk.shares_gradient);
    chunk.shares_gradient = chunk.slopes = chunk.features_gradient = nullptr;
    return chunk;
}

// `Most` is the largest number of components of senders. Kernels for fewer components need fewer registers, so more of
// them run at once. Only the kernel for all components supports EdgeWeights.
template <int Most>
inline constexpr bool kHasEdgeWeights = Most == 5;

// A table with the weights of one edge. Their slope is zero: DeviceEdgeNetwork handles all that they depend on.
template <class Real>
__device__ SplinePoint<Real> point_of_edge(const EdgeWeights<Real>& weights, int64_t edge) {
    SplinePoint<Real> point;
    point.row = weights.weights + edge * weights.column_count;
    return point;
}

// Computes points, other ends and shares of `count` edges from `begin` on. All threads must call it; it synchronises
// the block before and after.
template <int Most, class Real>
__device__ void stage_chunk(const typename DeviceMessages<Real>::View& view, const EdgesView<Real>& edges, int64_t atom,
                            int64_t begin, int count, bool is_sender, const Chunk<Real>& chunk) {
    __syncthreads();
    const int own = edges.elements[atom];
    for (int e = static_cast<int>(threadIdx.x); e < count; e += kBlockThreads) {
        const int32_t other = edges.sender[begin + e];
        const int element = edges.elements[other];
        const auto& table = is_sender ? view.table(element, own) : view.table(own, element);
        chunk.others[e] = other;
        chunk.points[e] =
            kHasEdgeWeights<Most> && view.edge_weights.weights
                ? point_of_edge(view.edge_weights, is_sender ? view.edge_weights.reverse[begin + e] : begin + e)
                : table.at(edges.distance[begin + e]);
    }
    const ShareTerm<Real>* terms = is_sender ? view.reversed.share_terms : view.share_terms;
    for (int i = static_cast<int>(threadIdx.x); i < count * view.share_count; i += kBlockThreads) {
        const int e = i / view.share_count, share = i % view.share_count;
        const Real* harmonics = edges.harmonics + (begin + e) * edges.harmonic_count;
        Real sum = 0;
        for (int t = view.first_share_term[share]; t < view.first_share_term[share + 1]; ++t)
            sum += terms[t].value * harmonics[terms[t].index];
        chunk.shares[i] = sum;
    }
    __syncthreads();
}

// ---- forward ----

template <int Components, int Out, class Real>
__device__ void sum_path(const typename DeviceMessages<Real>::View& view,
                         const typename DeviceMessages<Real>::Path& path, const Chunk<Real>& chunk, int count,
                         const RowsView<const Real>& senders, int first_component, int first_out, bool is_first,
                         Real* sums) {
    for (int k = static_cast<int>(threadIdx.x); k < path.stride; k += kBlockThreads) {
        Real* to = sums + path.out_offset + first_out * path.stride + k;
        Real sum[Out];
        for (int c = 0; c < Out; ++c) sum[c] = is_first ? Real(0) : to[c * path.stride];
        for (int e = 0; e < count; ++e) {
            const Real radial = value_at(chunk.points[e], path.column + k);
            const Real* features = senders.of(chunk.others[e]) + path.in_offset + k;
            const Real* shares = chunk.shares + e * view.share_count + path.first_share;
            for (int a = 0; a < Components; ++a) {
                const Real weighed = radial * features[(first_component + a) * path.stride];
                for (int c = 0; c < Out; ++c)
                    sum[c] += shares[(first_component + a) * path.out_components + first_out + c] * weighed;
            }
        }
        for (int c = 0; c < Out; ++c) to[c * path.stride] = sum[c];
    }
}

template <int Most, class Real>
__device__ void sum_any_path(const typename DeviceMessages<Real>::View& view,
                             const typename DeviceMessages<Real>::Path& path, const Chunk<Real>& chunk, int count,
                             const RowsView<const Real>& senders, bool is_first, Real* sums) {
    const bool is_done = visit_path_shape<Most>(
        path.in_components, path.out_components, [&]<int In, int Out>(Constant<In>, Constant<Out>) {
            sum_path<In, Out, Real>(view, path, chunk, count, senders, 0, 0, is_first, sums);
        });
    if (is_done) return;
    for (int a = 0; a < path.in_components; ++a)
        for (int c = 0; c < path.out_components; ++c)
            sum_path<1, 1, Real>(view, path, chunk, count, senders, a, c, is_first && a == 0, sums);
}

// Launch: one block per atom.
template <int Most, class Real>
__global__ void __launch_bounds__(kBlockThreads)
    sum_messages(typename DeviceMessages<Real>::View view, EdgesView<Real> edges, RowsView<const Real> senders,
                 Real* sums, Real* densities) {
    mlff::gpu::await_predecessor();
    const Chunk<Real> chunk = lay_out_forward_chunk<Real>(view);
    const int64_t atom = blockIdx.x;
    const int64_t first = edges.first[atom], end = edges.first[atom + 1];
    Real* own = sums + atom * view.sums_size;
    if (first == end)
        for (int k = static_cast<int>(threadIdx.x); k < view.sums_size; k += kBlockThreads) own[k] = Real(0);
    Real density = 0;
    for (int64_t begin = first; begin < end; begin += view.edges_per_chunk) {
        const int count = static_cast<int>(min(static_cast<int64_t>(view.edges_per_chunk), end - begin));
        stage_chunk<Most>(view, edges, atom, begin, count, false, chunk);
        for (int p = 0; p < view.path_count; ++p)
            sum_any_path<Most, Real>(view, view.paths[p], chunk, count, senders, begin == first, own);
        if (view.density_column >= 0 && threadIdx.x == 0)
            for (int e = 0; e < count; ++e) density += value_at(chunk.points[e], view.density_column);
    }
    if (threadIdx.x == 0 && densities) densities[atom] = density;
}

// ---- reverse ----

// Sums each of `Count` numbers over the lanes of the warp, with about Count + log2(32 / Count) shuffles instead of
// 5 Count. With P the next power of two of Count, lane l gets the sum of number l / (32 / P).
template <int Count, class Real>
__device__ Real sum_over_lanes(const Real (&numbers)[Count]) {
    static_assert(Count <= 32);
    constexpr int kPadded = Count <= 1 ? 1 : Count <= 2 ? 2 : Count <= 4 ? 4 : Count <= 8 ? 8 : Count <= 16 ? 16 : 32;
    const unsigned lane = threadIdx.x % 32;
    Real kept[kPadded];
#pragma unroll
    for (int i = 0; i < kPadded; ++i) kept[i] = i < Count ? numbers[i] : Real(0);
    unsigned distance = 16;
#pragma unroll
    for (int half = kPadded / 2; half >= 1; half /= 2) {
        const bool is_upper = lane & distance;
#pragma unroll
        for (int i = 0; i < half; ++i) {
            const Real mine = is_upper ? kept[i + half] : kept[i], theirs = is_upper ? kept[i] : kept[i + half];
            kept[i] = mine + __shfl_xor_sync(kAllLanes, theirs, distance);
        }
        distance /= 2;
    }
    for (; distance >= 1; distance /= 2) kept[0] += __shfl_xor_sync(kAllLanes, kept[0], distance);
    return kept[0];
}

// Writes the sums of numbers from Begin on, 32 at a time.
template <int Begin, int Count, class Real>
__device__ void write_sums(const Real (&numbers)[Count], Real* to) {
    constexpr int kHere = Count - Begin < 32 ? Count - Begin : 32;
    constexpr int kPadded = kHere <= 1 ? 1 : kHere <= 2 ? 2 : kHere <= 4 ? 4 : kHere <= 8 ? 8 : kHere <= 16 ? 16 : 32;
    Real part[kHere];
#pragma unroll
    for (int i = 0; i < kHere; ++i) part[i] = numbers[Begin + i];
    const Real sum = sum_over_lanes(part);
    const int lane = static_cast<int>(threadIdx.x % 32), index = lane / (32 / kPadded);
    if (lane % (32 / kPadded) == 0 && index < kHere) to[Begin + index] = sum;
    if constexpr (Count > Begin + 32) write_sums<Begin + 32>(numbers, to);
}

// One path for the edges of one warp. `features` and `features_gradient` (of this warp, or nullptr) are
// [component][stride].
template <int Most, int Components, int Out, class Real>
__device__ void reverse_path(const typename DeviceMessages<Real>::View& view,
                             const typename DeviceMessages<Real>::Path& path, const Chunk<Real>& chunk, int count,
                             const Real* features, const Real* sums_gradient, int first_component, int first_out,
                             Real* features_gradient) {
    const int lane = static_cast<int>(threadIdx.x % 32);
    features += first_component * path.stride;
    for (int e = static_cast<int>(threadIdx.x / 32); e < count; e += kWarps) {
        const SplinePoint<Real> point = chunk.points[e];
        const Real* gradient =
            sums_gradient + int64_t{chunk.others[e]} * view.sums_size + path.out_offset + first_out * path.stride;
        const int share = e * view.share_count + path.first_share + first_component * path.out_components + first_out;
        Real shares[Components * Out], share_sums[Components * Out] = {};
#pragma unroll
        for (int a = 0; a < Components; ++a)
#pragma unroll
            for (int c = 0; c < Out; ++c) shares[a * Out + c] = chunk.shares[share + a * path.out_components + c];
        Real slope[1] = {};
        for (int k = lane; k < path.stride; k += 32) {
            Real radial = point.row[path.column + k], radial_slope = 0;
#pragma unroll
            for (int t = 0; t < kSplineOrder; ++t) {
                const Real d = point.share_row(t)[path.column + k];
                radial += point.value[t] * d;
                radial_slope += point.slope[t] * d;
            }
            Real by_sums[Out];
#pragma unroll
            for (int c = 0; c < Out; ++c) by_sums[c] = gradient[c * path.stride + k];
            Real by_radial = 0;
#pragma unroll
            for (int a = 0; a < Components; ++a) {
                Real pulled = 0;
#pragma unroll
                for (int c = 0; c < Out; ++c) pulled += shares[a * Out + c] * by_sums[c];
                const Real feature = features[a * path.stride + k];
                by_radial += feature * pulled;
                if (features_gradient) features_gradient[(first_component + a) * path.stride + k] += radial * pulled;
                const Real weighed = radial * feature;
#pragma unroll
                for (int c = 0; c < Out; ++c) share_sums[a * Out + c] += weighed * by_sums[c];
            }
            slope[0] += radial_slope * by_radial;
            if constexpr (kHasEdgeWeights<Most>)  // no race: only this lane has this edge, path and channel
                if (view.edge_weights.weights)
                    view.edge_weights.gradient[point.row - view.edge_weights.weights + path.column + k] += by_radial;
        }
        __syncwarp();
        // These are all shares of the path, which are contiguous, or only one.
        write_sums<0>(share_sums, chunk.shares_gradient + share);
        const Real total = sum_over_lanes(slope);
        if (lane == 0) chunk.slopes[e] += total;
    }
}

template <int Most, class Real>
__device__ void reverse_any_path(const typename DeviceMessages<Real>::View& view,
                                 const typename DeviceMessages<Real>::Path& path, const Chunk<Real>& chunk, int count,
                                 const Real* features, const Real* sums_gradient, Real* features_gradient) {
    const bool is_done = visit_path_shape<Most>(
        path.in_components, path.out_components, [&]<int In, int Out>(Constant<In>, Constant<Out>) {
            reverse_path<Most, In, Out, Real>(view, path, chunk, count, features, sums_gradient, 0, 0,
                                              features_gradient);
        });
    if (is_done) return;
    for (int a = 0; a < path.in_components; ++a)
        for (int c = 0; c < path.out_components; ++c)
            reverse_path<Most, 1, 1, Real>(view, path, chunk, count, features, sums_gradient, a, c, features_gradient);
}

// Launch: one block per atom; its warps take edges in turn.
template <int Most, class Real>
__global__ void __launch_bounds__(kBlockThreads)
    reverse_messages(typename DeviceMessages<Real>::View view, EdgesView<Real> edges, RowsView<const Real> senders,
                     const Real* sums_gradient, const Real* densities_gradient, EdgeGradientsView<Real> gradients,
                     bool accumulate, Real* senders_gradient) {
    mlff::gpu::await_predecessor();
    const Chunk<Real> chunk = lay_out_chunk<Real>(view);
    const int64_t atom = blockIdx.x;
    const int64_t end = edges.first[atom + 1];
    const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
    const Real* features = senders.of(atom);
    for (int64_t begin = edges.first[atom]; begin < end; begin += view.edges_per_chunk) {
        const int count = static_cast<int>(min(static_cast<int64_t>(view.edges_per_chunk), end - begin));
        stage_chunk<Most>(view, edges, atom, begin, count, true, chunk);
        for (int e = thread; e < count; e += kBlockThreads) chunk.slopes[e] = 0;
        __syncthreads();
        for (int p = 0; p < view.path_count; ++p) {
            const auto path = view.paths[p];
            const int size = path.in_components * path.stride;
            Real* own = senders_gradient ? chunk.features_gradient + warp * size : nullptr;
            if (own)
                for (int i = lane; i < size; i += 32) own[i] = 0;
            __syncwarp();
            reverse_any_path<Most, Real>(view, path, chunk, count, features + path.in_offset, sums_gradient, own);
            if (!senders_gradient) continue;
            __syncthreads();
            Real* to = senders_gradient + atom * view.sender_size + path.in_offset;
            for (int i = thread; i < size; i += kBlockThreads) {
                Real sum = 0;
                for (int w = 0; w < kWarps; ++w) sum += chunk.features_gradient[w * size + i];
                to[i] += sum;
            }
            __syncthreads();
        }
        __syncthreads();
        for (int i = thread; i < count * edges.harmonic_count; i += kBlockThreads) {
            const int e = i / edges.harmonic_count, harmonic = i % edges.harmonic_count;
            Real sum = 0;
            for (int t = view.first_harmonic_term[harmonic]; t < view.first_harmonic_term[harmonic + 1]; ++t)
                sum += view.reversed.harmonic_terms[t].value *
                       chunk.shares_gradient[e * view.share_count + view.reversed.harmonic_terms[t].index];
            Real* to = gradients.harmonics + (begin + e) * edges.harmonic_count + harmonic;
            *to = accumulate ? *to + sum : sum;
        }
        for (int e = thread; e < count; e += kBlockThreads) {
            double slope = static_cast<double>(chunk.slopes[e]);
            if (view.density_column >= 0)
                slope += static_cast<double>(densities_gradient[chunk.others[e]] *
                                             slope_at(chunk.points[e], view.density_column));
            gradients.distance[begin + e] = accumulate ? gradients.distance[begin + e] + slope : slope;
        }
    }
}

}  // namespace

template <class Real>
DeviceMessages<Real>::DeviceMessages(const ConvolutionPlan<Real>& plan, int harmonic_count, cudaStream_t stream)
    : plan_(plan), tables_(plan.tables, plan.receiver_stride, plan.sender_stride) {
    std::vector<Path> paths;
    for (const PathPlan<Real>& path : plan.paths) {
        paths.push_back({path.in_offset, path.in_components, path.out_offset, path.out_components, path.stride,
                         path.column, share_count_});
        share_count_ += path.share_count();
    }
    upload(paths_, paths, stream);
    shares_.upload(list_shares(plan.paths, harmonic_count, false), stream);
    reversed_shares_.upload(list_shares(plan.paths, harmonic_count, true), stream);
}

template <class Real>
typename DeviceMessages<Real>::View DeviceMessages<Real>::view(const EdgeWeights<Real>& weights,
                                                               bool is_reverse) const {
    View view{view_layer(plan_, shares_, tables_)};
    view.reversed = reversed_shares_.view();
    view.paths = paths_.data();
    view.path_count = static_cast<int>(paths_.size());
    view.share_count = share_count_;
    for (const PathPlan<Real>& path : plan_.paths)
        view.most_feature_rows = std::max(view.most_feature_rows, path.in_components * path.stride);
    view.edge_weights = weights;
    // As many edges at a time as fit into this much shared memory, so that several blocks run on a multiprocessor.
    constexpr size_t kShared = 40 << 10;
    view.edges_per_chunk = 96;
    while (view.edges_per_chunk > 4 && shared_bytes(view, is_reverse) > kShared) view.edges_per_chunk -= 4;
    return view;
}

template <class Real>
size_t DeviceMessages<Real>::shared_bytes(const View& view, bool is_reverse) const {
    const auto edges = static_cast<size_t>(view.edges_per_chunk), shares = static_cast<size_t>(view.share_count);
    const size_t forward = edges * (sizeof(SplinePoint<Real>) + shares * sizeof(Real) + sizeof(int32_t));
    if (!is_reverse) return forward;
    return forward + edges * (shares + 1) * sizeof(Real) +
           static_cast<size_t>(kWarps * view.most_feature_rows) * sizeof(Real);
}

template <class Real>
void DeviceMessages<Real>::compute(const EdgesView<Real>& edges, const EdgeWeights<Real>& weights,
                                   RowsView<const Real> senders, Real* sums, Real* densities,
                                   cudaStream_t stream) const {
    if (edges.atom_count == 0) return;
    const View shape = view(weights, false);
    auto kernel = sum_messages<5, Real>;
    if constexpr (sizeof(Real) == 8)  // in single precision this is for models that fused messages lack
        if (plan_.most_components <= 3 && !weights.weights) kernel = sum_messages<3, Real>;
    launch("summing messages", kernel,
           LaunchShape{dim3(static_cast<unsigned>(edges.atom_count)), kBlockThreads, shared_bytes(shape, false)},
           stream, shape, edges, senders, sums, densities);
}

template <class Real>
void DeviceMessages<Real>::reverse(const EdgesView<Real>& edges, const EdgeWeights<Real>& weights,
                                   RowsView<const Real> senders, const Real* sums_gradient,
                                   const Real* densities_gradient, const EdgeGradientsView<Real>& gradients,
                                   bool accumulate, Real* senders_gradient, cudaStream_t stream) const {
    if (edges.atom_count == 0) return;
    const View shape = view(weights, true);
    auto kernel = reverse_messages<5, Real>;
    if constexpr (sizeof(Real) == 8)  // in single precision this is for models that fused messages lack
        if (plan_.most_components <= 3 && !weights.weights) kernel = reverse_messages<3, Real>;
    launch("reversing messages", kernel,
           LaunchShape{dim3(static_cast<unsigned>(edges.atom_count)), kBlockThreads, shared_bytes(shape, true)}, stream,
           shape, edges, senders, sums_gradient, densities_gradient, gradients, accumulate, senders_gradient);
}

template class DeviceMessages<float>;
template class DeviceMessages<double>;

}  // namespace mlff::equivariant::gpu
