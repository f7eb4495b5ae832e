// SPDX-License-Identifier: MIT
#include "equivariant/gpu/moments.h"

#include "gpu/engine/instructions.h"
#include "gpu/engine/warp.h"
#include "gpu/runtime/cuda_check.h"

namespace mlff::equivariant::gpu {
namespace {

using mlff::gpu::launch;
using mlff::gpu::LaunchShape;

// A block has one atom, and handles one element of its senders after the other. A group of kLanes lanes handles one
// edge at a time. A lane has some functions of the edge and kRows rows: its part of the moments, or of their gradient,
// stays in registers.
constexpr int kLanes = 16;
constexpr int kGroups = kBlockThreads / kLanes;
constexpr int kRows = 16;
constexpr int kBatch = 4;  // edges whose numbers a thread loads before it uses the first
template <class Real>
constexpr int kTileColumns = kLanes* kVectorSize<Real>;
// Blocks per multiprocessor. This limits the registers of a thread: with fewer registers, the loads of an edge would
// wait for each other.
template <class Real>
constexpr int kForwardBlocks = sizeof(Real) == 4 ? 4 : 3;
constexpr int kReverseBlocks = 3;
static_assert(kRows == kLanes);  // in the reverse, each lane of a group gets the sum of one row

// A chunk of the edges of the block's atom, sorted by the element of the sender, in shared memory.
template <class Real>
struct Chunk {
    SplinePoint<Real>* points;  // [edge]
    Real* shares;               // [edge][padded_rows], padded with zeros
    Real* partial;              // [warp][kRows][kTileColumns]; forward only
    Real* shares_gradient;      // [edge][padded_rows]; reverse only
    Real* slopes;               // [edge]; reverse only
    int32_t* edges;             // [edge]: its index before sorting, counted from the first edge of the chunk

    __device__ Chunk from(int edge, int padded_rows) const {
        return {points + edge, shares + edge * padded_rows,
                partial,       shares_gradient + edge * padded_rows,
                slopes + edge, edges + edge};
    }
};

// The number of edges of a chunk for each sender element of the block, 8 bits each.
struct SenderCounts {
    uint32_t packed = 0;
    __device__ int of(int index) const { return static_cast<int>(packed >> (8 * index) & 0xffu); }
};

template <class Real, bool kReverse>
__device__ Chunk<Real> lay_out_chunk(const typename DeviceMoments<Real>::View& view) {
    Chunk<Real> chunk{};
    chunk.points = reinterpret_cast<SplinePoint<Real>*>(mlff::gpu::launched_shared_memory());
    chunk.shares = reinterpret_cast<Real*>(chunk.points + view.edges_per_chunk);
    Real* next = chunk.shares + view.edges_per_chunk * view.padded_rows;
    if constexpr (kReverse) {
        chunk.shares_gradient = next;
        chunk.slopes = next + view.edges_per_chunk * view.padded_rows;
        next = chunk.slopes + view.edges_per_chunk;
    } else {
        chunk.partial = next;
        next += kWarps * kRows * kTileColumns<Real>;
    }
    chunk.edges = reinterpret_cast<int32_t*>(next);
    return chunk;
}

// The atom, edges and sender elements of a block.
template <class Real>
struct BlockTask {
    int64_t atom, first, end;
    int first_sender, sender_count;       // among the sender elements of the launch
    const RadialTableView<Real>* tables;  // [sender element * sender_stride]

    __device__ BlockTask(const typename DeviceMoments<Real>::View& view, const EdgesView<Real>& edges,
                         const typename DeviceMoments<Real>::Senders& senders) {
        const auto parts = static_cast<unsigned>(senders.parts());
        atom = blockIdx.x / parts;
        first = edges.first[atom];
        end = edges.first[atom + 1];
        first_sender = static_cast<int>(blockIdx.x % parts) * senders.per_block;
        sender_count = min(senders.per_block, senders.count - first_sender);
        tables = view.tables + edges.elements[atom] * view.receiver_stride;
    }

    // The offset of the atom in [sender][atom][row][stride], for a sender element of this block.
    __device__ int64_t place(const typename DeviceMoments<Real>::View& view, int32_t atom_count, int sender) const {
        return ((first_sender + sender) * int64_t{atom_count} + atom) * (int64_t{view.row_count} * view.stride);
    }
};

// Selects from `count` edges from `begin` on those from atoms of the block's sender elements, sorts them by element
// (stable), and computes their points and shares. All threads must call it; it synchronises the block before it
// overwrites the chunk, and at the end.
template <class Real>
__device__ SenderCounts stage_chunk(const typename DeviceMoments<Real>::View& view, const EdgesView<Real>& edges,
                                    const typename DeviceMoments<Real>::Senders& senders, const BlockTask<Real>& task,
                                    int64_t begin, int count, const Chunk<Real>& chunk) {
    __shared__ int taken[DeviceMoments<Real>::kMostSenders][kWarps];
    const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
    const bool is_edge = thread < count;
    const int element = is_edge ? edges.elements[edges.sender[begin + thread]] : -1;
    const double distance = is_edge ? edges.distance[begin + thread] : 0;
    int own = -1, place = 0, total = 0;
    for (int s = 0; s < task.sender_count; ++s) {
        const bool is_one = element == senders.elements[task.first_sender + s];
        const unsigned ballot = __ballot_sync(kAllLanes, is_one);
        if (lane == 0) taken[s][warp] = __popc(ballot);
        if (!is_one) continue;
        own = s;
        place = __popc(ballot & ((1u << lane) - 1));
    }
    __syncthreads();
    SenderCounts counts;
    for (int s = 0; s < task.sender_count; ++s) {
        const int before = total;
#pragma unroll
        for (int w = 0; w < kWarps; ++w) {
            if (s == own && w == warp) place += total;
            total += taken[s][w];
        }
        counts.packed |= static_cast<uint32_t>(total - before) << (8 * s);
    }
    if (own >= 0) {
        chunk.edges[place] = thread;
        chunk.points[place] = task.tables[element * view.sender_stride].at(distance);
    }
    __syncthreads();
    const Real* harmonics = edges.harmonics + begin * edges.harmonic_count;
    for (int row = thread % kLanes; row < view.padded_rows; row += kLanes) {
        const bool is_padding = row >= view.row_count;
        const int first = is_padding ? 0 : view.first_share_term[row],
                  end = is_padding ? 0 : view.first_share_term[row + 1];
        const ShareTerm<Real> term = first < end ? view.share_terms[first] : ShareTerm<Real>{};
        for (int e = thread / kLanes; e < total; e += kBatch * kGroups) {
            Real numbers[kBatch];
#pragma unroll
            for (int b = 0; b < kBatch; ++b)
                numbers[b] = e + b * kGroups < total
                                 ? harmonics[chunk.edges[e + b * kGroups] * edges.harmonic_count + term.index]
                                 : Real(0);
#pragma unroll
            for (int b = 0; b < kBatch; ++b)
                if (e + b * kGroups < total)
                    chunk.shares[(e + b * kGroups) * view.padded_rows + row] = term.value * numbers[b];
        }
#pragma unroll 1
        for (int t = first + 1; t < end; ++t)  // few models have more than one term
#pragma unroll 1
            for (int e = thread / kLanes; e < total; e += kGroups)
                chunk.shares[e * view.padded_rows + row] +=
                    view.share_terms[t].value *
                    harmonics[chunk.edges[e] * edges.harmonic_count + view.share_terms[t].index];
    }
    __syncthreads();
    return counts;
}

template <class Real>
struct Functions {
    Vector<Real> value, slope;
};
// The kVectorSize functions from `column` on.
template <class Real>
__device__ __forceinline__ Functions<Real> functions_at(const SplinePoint<Real>& point, int column) {
    Functions<Real> functions;
    functions.value = load_vector(point.row + column);
#pragma unroll
    for (int t = 0; t < kSplineOrder; ++t) {
        const Vector<Real> difference = load_vector(point.share_row(t) + column);
#pragma unroll
        for (int c = 0; c < kVectorSize<Real>; ++c) {
            functions.value.at[c] += point.value[t] * difference.at[c];
            functions.slope.at[c] += point.slope[t] * difference.at[c];
        }
    }
    return functions;
}

// ---- forward ----

// For a tile of rows and functions:
//   moments[row][h] = (or += if `accumulate`) sum over the edges of the chunk of share[row] f[h]
// All threads must call it; it synchronises the block.
template <class Real>
__device__ __forceinline__ void sum_tile(const typename DeviceMoments<Real>::View& view, const Chunk<Real>& chunk,
                                         int count, int first_row, int first_column, bool accumulate, Real* moments) {
    constexpr int kSize = kVectorSize<Real>, kHalf = kRows / 2;
    const int thread = static_cast<int>(threadIdx.x), lane = thread % kLanes, warp = thread / 32;
    const int column = first_column + lane * kSize;
    Real sums[kRows][kSize] = {};
    if (column < view.stride)
        for (int e = thread / kLanes; e < count; e += kGroups) {
            const Vector<Real> f = functions_at(chunk.points[e], column).value;
            const Real* shares = chunk.shares + e * view.padded_rows + first_row;
#pragma unroll
            for (int r = 0; r < kRows; r += kSize) {
                const Vector<Real> share = load_vector(shares + r);
#pragma unroll
                for (int i = 0; i < kSize; ++i)
#pragma unroll
                    for (int c = 0; c < kSize; ++c) sums[r + i][c] += share.at[i] * f.at[c];
            }
        }
    // Add the sums of the two groups of a warp, each group taking half of the rows; then add the warps in order.
    const bool is_upper = thread & kLanes;
    Real* partial = chunk.partial + (warp * kRows + (is_upper ? kHalf : 0)) * kTileColumns<Real> + lane * kSize;
#pragma unroll
    for (int r = 0; r < kHalf; ++r) {
        Vector<Real> sum;
#pragma unroll
        for (int c = 0; c < kSize; ++c) {
            const Real mine = is_upper ? sums[r + kHalf][c] : sums[r][c],
                       theirs = is_upper ? sums[r][c] : sums[r + kHalf][c];
            sum.at[c] = mine + __shfl_xor_sync(kAllLanes, theirs, kLanes);
        }
        store_vector(partial + r * kTileColumns<Real>, sum);
    }
    __syncthreads();
    if (column < view.stride)
        for (int row = thread / kLanes; row < kRows && first_row + row < view.row_count; row += kGroups) {
            Real* to = moments + (first_row + row) * view.stride + column;
            Vector<Real> sum;
            if (accumulate) sum = load_vector(to);
#pragma unroll
            for (int w = 0; w < kWarps; ++w) {
                const Vector<Real> part =
                    load_vector(chunk.partial + (w * kRows + row) * kTileColumns<Real> + lane * kSize);
#pragma unroll
                for (int c = 0; c < kSize; ++c) sum.at[c] += part.at[c];
            }
            store_vector(to, sum);
        }
    __syncthreads();
}

// Launch: one block for each atom and each senders.per_block sender elements.
template <class Real>
__global__ void __launch_bounds__(kBlockThreads, kForwardBlocks<Real>)
    sum_moments(typename DeviceMoments<Real>::View view, EdgesView<Real> edges,
                typename DeviceMoments<Real>::Senders senders, Real* moments, Real* densities) {
    mlff::gpu::await_predecessor();
    __shared__ Real partial_density[kWarps];
    const Chunk<Real> chunk = lay_out_chunk<Real, false>(view);
    const BlockTask<Real> task(view, edges, senders);
    const int thread = static_cast<int>(threadIdx.x);
    unsigned has_sums = 0;  // one bit for each sender element
    for (int64_t begin = task.first; begin < task.end; begin += view.edges_per_chunk) {
        const int window = static_cast<int>(min(static_cast<int64_t>(view.edges_per_chunk), task.end - begin));
        const SenderCounts counts = stage_chunk(view, edges, senders, task, begin, window, chunk);
        int first = 0;
        for (int s = 0; s < task.sender_count; ++s) {
            const int count = counts.of(s);
            if (count == 0) continue;
            for (int row = 0; row < view.row_count; row += kRows)
                for (int column = 0; column < view.stride; column += kTileColumns<Real>)
                    sum_tile(view, chunk.from(first, view.padded_rows), count, row, column, has_sums >> s & 1,
                             moments + task.place(view, edges.atom_count, s));
            has_sums |= 1u << s;
            first += count;
        }
    }
    for (int s = 0; s < task.sender_count; ++s)
        if (!(has_sums >> s & 1))
            for (int i = thread; i < view.row_count * view.stride; i += kBlockThreads)
                moments[task.place(view, edges.atom_count, s) + i] = Real(0);
    if (!densities || task.first_sender != 0) return;
    Real density = 0;
    if (view.density_column >= 0)
        for (int64_t edge = task.first + thread; edge < task.end; edge += kBlockThreads)
            density +=
                value_at(task.tables[edges.elements[edges.sender[edge]] * view.sender_stride].at(edges.distance[edge]),
                         view.density_column);
    density = sum_over_block(density, partial_density);
    if (thread == 0) densities[task.atom] = density;
}

// ---- reverse ----

// Each lane of a group has kRows numbers. Lane l gets the sum of number l over the group.
template <int Half = kRows / 2, class Real>
__device__ __forceinline__ Real sum_rows_over_group(Real (&numbers)[kRows]) {
    const bool is_upper = threadIdx.x & Half;
#pragma unroll
    for (int i = 0; i < Half; ++i) {
        const Real mine = is_upper ? numbers[i + Half] : numbers[i], theirs = is_upper ? numbers[i] : numbers[i + Half];
        numbers[i] = mine + __shfl_xor_sync(kAllLanes, theirs, Half);
    }
    if constexpr (Half > 1) return sum_rows_over_group<Half / 2>(numbers);
    return numbers[0];
}

// For a tile g[row][h] of the gradient of the moments, and each edge of the chunk:
//   shares_gradient[row] = (or +=) sum over h of f[h] g[row][h]
//   slope                = (or +=) sum over h of f'[h] (sum over rows of share[row] g[row][h])
// The first tile writes, the others add.
template <class Real>
__device__ __forceinline__ void reverse_tile(const typename DeviceMoments<Real>::View& view, const Chunk<Real>& chunk,
                                             int count, int first_row, int first_column, const Real* gradient) {
    constexpr int kSize = kVectorSize<Real>;
    const int thread = static_cast<int>(threadIdx.x), lane = thread % kLanes, half = thread / kLanes % 2;
    if (count == 0) return;
    // Lanes beyond the last function read others, with a gradient of zero.
    const bool has_functions = first_column + lane * kSize < view.stride;
    const int column = has_functions ? first_column + lane * kSize : 0;
    Vector<Real> g[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r)
        g[r] = has_functions && first_row + r < view.row_count
                   ? load_vector(gradient + (first_row + r) * view.stride + column)
                   : Vector<Real>{};
    // Both groups of a warp make the same number of turns, because lanes exchange numbers. If only the lower group has
    // an edge left, the upper one repeats it and writes nothing.
    for (int first = thread / 32 * 2; first < count; first += kGroups) {
        const int e = min(first + half, count - 1);
        const Functions<Real> f = functions_at(chunk.points[e], column);
        const Real* shares = chunk.shares + e * view.padded_rows + first_row;
        Real by_share[kRows];
        Vector<Real> pulled;
#pragma unroll
        for (int r = 0; r < kRows; r += kSize) {
            const Vector<Real> share = load_vector(shares + r);
#pragma unroll
            for (int i = 0; i < kSize; ++i) {
                by_share[r + i] = 0;
#pragma unroll
                for (int c = 0; c < kSize; ++c) {
                    by_share[r + i] += f.value.at[c] * g[r + i].at[c];
                    pulled.at[c] += share.at[i] * g[r + i].at[c];
                }
            }
        }
        Real slope = 0;
#pragma unroll
        for (int c = 0; c < kSize; ++c) slope += f.slope.at[c] * pulled.at[c];
        const Real by_own_share = sum_rows_over_group(by_share);
#pragma unroll
        for (int distance = kLanes / 2; distance >= 1; distance /= 2)
            slope += __shfl_xor_sync(kAllLanes, slope, distance);
        if (first + half >= count) continue;
        Real* to = chunk.shares_gradient + e * view.padded_rows + first_row + lane;
        *to = first_column == 0 ? by_own_share : *to + by_own_share;
        if (lane == 0) chunk.slopes[e] = first_row == 0 && first_column == 0 ? slope : chunk.slopes[e] + slope;
    }
}

// Writes the gradients of the harmonics and distances of the chunk's edges. Synchronises the block at the beginning.
template <class Real>
__device__ __forceinline__ void write_gradients(const typename DeviceMoments<Real>::View& view,
                                                const EdgesView<Real>& edges, const Chunk<Real>& chunk, int count,
                                                int64_t begin, Real density_gradient,
                                                const EdgeGradientsView<Real>& gradients, bool accumulate) {
    const int thread = static_cast<int>(threadIdx.x);
    __syncthreads();
    for (int harmonic = thread % kLanes; harmonic < edges.harmonic_count; harmonic += kLanes) {
        const int first = view.first_harmonic_term[harmonic], end = view.first_harmonic_term[harmonic + 1];
        Real* to = gradients.harmonics + begin * edges.harmonic_count + harmonic;
        for (int e = thread / kLanes; e < count; e += kBatch * kGroups) {
            Real sums[kBatch];
#pragma unroll
            for (int b = 0; b < kBatch; ++b)
                sums[b] = accumulate && e + b * kGroups < count
                              ? to[chunk.edges[e + b * kGroups] * edges.harmonic_count]
                              : Real(0);
#pragma unroll
            for (int b = 0; b < kBatch; ++b) {
                if (e + b * kGroups >= count) break;
#pragma unroll 1
                for (int t = first; t < end; ++t)
                    sums[b] +=
                        view.harmonic_terms[t].value *
                        chunk.shares_gradient[(e + b * kGroups) * view.padded_rows + view.harmonic_terms[t].index];
                to[chunk.edges[e + b * kGroups] * edges.harmonic_count] = sums[b];
            }
        }
    }
    for (int e = thread; e < count; e += kBlockThreads) {
        double slope = static_cast<double>(chunk.slopes[e]);
        if (view.density_column >= 0)
            slope += static_cast<double>(density_gradient * slope_at(chunk.points[e], view.density_column));
        double* to = gradients.distance + begin + chunk.edges[e];
        *to = accumulate ? *to + slope : slope;
    }
}

// Launch: like sum_moments.
template <class Real>
__global__ void __launch_bounds__(kBlockThreads, kReverseBlocks)
    reverse_moments(typename DeviceMoments<Real>::View view, EdgesView<Real> edges,
                    typename DeviceMoments<Real>::Senders senders, const Real* moments_gradient,
                    const Real* densities_gradient, EdgeGradientsView<Real> gradients, bool accumulate) {
    mlff::gpu::await_predecessor();
    const Chunk<Real> chunk = lay_out_chunk<Real, true>(view);
    const BlockTask<Real> task(view, edges, senders);
    const Real density_gradient = view.density_column >= 0 ? densities_gradient[task.atom] : Real(0);
    for (int64_t begin = task.first; begin < task.end; begin += view.edges_per_chunk) {
        const int window = static_cast<int>(min(static_cast<int64_t>(view.edges_per_chunk), task.end - begin));
        const SenderCounts counts = stage_chunk(view, edges, senders, task, begin, window, chunk);
        int first = 0;
        for (int s = 0; s < task.sender_count; ++s) {
            const int count = counts.of(s);
            for (int row = 0; row < view.row_count; row += kRows)
                for (int column = 0; column < view.stride; column += kTileColumns<Real>)
                    reverse_tile(view, chunk.from(first, view.padded_rows), count, row, column,
                                 moments_gradient + task.place(view, edges.atom_count, s));
            first += count;
        }
        write_gradients(view, edges, chunk, first, begin, density_gradient, gradients, accumulate);
    }
}

}  // namespace

template <class Real>
DeviceMoments<Real>::DeviceMoments(const ConvolutionPlan<Real>& plan, int harmonic_count, cudaStream_t stream)
    : plan_(plan), tables_(plan.tables, plan.receiver_stride, plan.sender_stride) {
    const ShareLists<Real> lists = list_shares(plan.paths, harmonic_count, false);
    if (!plan.moments || plan.moments->row_count() != static_cast<int>(lists.of_shares.size()))
        fail(Status::internal, "the layer has no moments");
    shares_.upload(lists, stream);
}

template <class Real>
typename DeviceMoments<Real>::View DeviceMoments<Real>::view(bool is_reverse) const {
    View view{view_layer(plan_, shares_, tables_)};
    view.row_count = plan_.moments->row_count();
    view.padded_rows = (view.row_count + kRows - 1) / kRows * kRows;
    view.stride = plan_.moments->stride();
    // At most one edge per thread, and as many edges as fit into this much shared memory, so that several blocks run on
    // a multiprocessor. A multiple of 16, so that the arrays after the points begin at multiples of 16 bytes.
    constexpr size_t kShared = 40 << 10;
    view.edges_per_chunk = 96;  // SenderCounts can count to 255
    while (view.edges_per_chunk > 16 && shared_bytes(view, is_reverse) > kShared) view.edges_per_chunk -= 16;
    return view;
}

template <class Real>
size_t DeviceMoments<Real>::shared_bytes(const View& view, bool is_reverse) {
    const auto edges = static_cast<size_t>(view.edges_per_chunk),
               shares = static_cast<size_t>(view.padded_rows) * sizeof(Real);
    const size_t staged = edges * (sizeof(SplinePoint<Real>) + shares + sizeof(int32_t));
    return staged + (is_reverse ? edges * (shares + sizeof(Real)) : kWarps * kRows * kTileColumns<Real> * sizeof(Real));
}

template <class Real>
typename DeviceMoments<Real>::Senders DeviceMoments<Real>::senders_of(std::span<const int> elements,
                                                                      int64_t atom_count) {
    if (elements.size() > kMostSenders) fail(Status::internal, "too many elements at once");
    // With few atoms, one block per element uses more of the GPU. With many atoms, it is less work to read the edges of
    // an atom once for all elements.
    constexpr int64_t kManyAtoms = 1024;
    Senders senders;
    for (int element : elements) senders.elements[senders.count++] = element;
    senders.per_block = atom_count < kManyAtoms ? 1 : senders.count;
    return senders;
}

template <class Real>
void DeviceMoments<Real>::compute(const EdgesView<Real>& edges, std::span<const int> sender_elements, Real* moments,
                                  Real* densities, cudaStream_t stream) const {
    if (edges.atom_count == 0 || sender_elements.empty()) return;
    const View shape = view(false);
    const Senders senders = senders_of(sender_elements, edges.atom_count);
    launch("summing moments", sum_moments<Real>,
           LaunchShape{dim3(senders.block_count(edges.atom_count)), kBlockThreads, shared_bytes(shape, false)}, stream,
           shape, edges, senders, moments, densities);
}

template <class Real>
void DeviceMoments<Real>::reverse(const EdgesView<Real>& edges, std::span<const int> sender_elements,
                                  const Real* moments_gradient, const Real* densities_gradient,
                                  const EdgeGradientsView<Real>& gradients, bool accumulate,
                                  cudaStream_t stream) const {
    if (edges.atom_count == 0 || sender_elements.empty()) return;
    const View shape = view(true);
    const Senders senders = senders_of(sender_elements, edges.atom_count);
    launch("reversing moments", reverse_moments<Real>,
           LaunchShape{dim3(senders.block_count(edges.atom_count)), kBlockThreads, shared_bytes(shape, true)}, stream,
           shape, edges, senders, moments_gradient, densities_gradient, gradients, accumulate);
}

template class DeviceMoments<float>;
template class DeviceMoments<double>;

}  // namespace mlff::equivariant::gpu
