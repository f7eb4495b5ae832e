// SPDX-License-Identifier: MIT
// All sums are products on tensor cores. A thread block has up to 16 atoms. It takes the elements that occur among
// their senders four at a time, so that the moments of an atom are a tile of 16 rows: four components for each of four
// elements. The functions of an edge are its columns, and edges the depth.
#include "painn/gpu/first_messages.h"

#include <algorithm>

#include "core/elements.h"
#include "gpu/engine/four.h"
#include "gpu/engine/product_lane.h"
#include "gpu/engine/warp.h"
#include "gpu/runtime/cuda_check.h"
#include "painn/gpu/block_atoms.h"
#include "painn/gpu/messages.h"
#include "painn/gpu/packed_filter.h"
#include "painn/gpu/sizes.h"
#include "painn/gpu/widths.h"

namespace mlff::painn::gpu {
namespace {

using namespace mlff::gpu;

constexpr int kPassElements = 4, kComponents = 4, kMomentRows = kPassElements * kComponents;
static_assert(kMomentRows == kProductRows && kComponents == kGradientRows);
constexpr int kFunctionSteps = kPassFunctions / kShortDepth, kFunctionTiles = kPassFunctions / 8;
static_assert(kFunctionSteps == 3 && kPassGroups == 6);
// Moments of an atom in shared memory, [element][component][function]. Atoms are shifted by a quarter of all banks.
constexpr int kAtomPitch = kMomentRows * kPassFunctions + 8;

// Values of functions are stored times a factor in single precision.
template <class Real>
constexpr Real kValueUnscale = sizeof(Real) == sizeof(float) ? Real(1 / kValueScale) : Real(1);

// With few atoms a block has few, so that there are more blocks.
constexpr int kFewAtoms = 4, kManyAtoms = kProductRows;

// Edges are taken by warps that have one atom each, in turn. If there are more warps than atoms, kParts warps divide
// the edges of an atom.
template <class StoredIn, int WidthIn, int MostAtoms, int MostWarps>
struct Shape {
    using Stored = StoredIn;
    using Real = RealOf<Stored>;
    using Product = TensorProduct<Real>;
    using Operand = typename Product::ShortOperand;
    using Group = typename FunctionLayout<Stored>::Group;
    static constexpr int kWidth = WidthIn, kWarps = std::min(kWidth / 16, MostWarps), kThreads = 32 * kWarps;
    static constexpr bool kIsSingle = sizeof(Real) == sizeof(float), kIsFew = MostAtoms == kFewAtoms;
    static constexpr int kAtoms = kIsFew ? std::min(MostAtoms, kWarps) : MostAtoms;
    static constexpr int kParts = std::max(1, kWarps / kAtoms);
    static constexpr bool kHasBottom = kAtoms > 8;  // the last 8 rows of tiles whose rows are atoms
};
// kBlocks is a number of blocks per multiprocessor that registers suffice for: some wait for edges while others
// multiply.
template <class Stored, int Width, int MostAtoms>
struct ForwardShape : Shape<Stored, Width, MostAtoms, 8> {
    using S = Shape<Stored, Width, MostAtoms, 8>;
    using Real = typename S::Real;
    static constexpr int kColumns = Width / S::kWarps, kTiles = kColumns / 8;  // channels of a warp
    static constexpr int kBlocks = S::kIsFew        ? 1
                                   : kColumns == 16 ? (S::kIsSingle ? 768 : 512) / S::kThreads
                                                    : (S::kIsSingle ? 512 : 256) / S::kThreads;
    static constexpr size_t kSharedBytes = sizeof(Real) * S::kParts * S::kAtoms * kAtomPitch;
};
template <class Stored, int Width, int MostAtoms>
struct ReverseShape : Shape<Stored, Width, MostAtoms, MostAtoms == kFewAtoms ? 8 : 4> {
    using S = Shape<Stored, Width, MostAtoms, MostAtoms == kFewAtoms ? 8 : 4>;
    using Real = typename S::Real;
    static constexpr int kBlocks = S::kIsFew ? 1 : (S::kIsSingle ? 640 : 512) / S::kThreads;
    static constexpr int kStepsAtOnce = S::kIsFew ? std::min(Width / kStep<Real>, 8) : 2;  // whose loads overlap
    static constexpr size_t kSharedBytes = sizeof(Real) * S::kAtoms * kAtomPitch;
};

template <class S>
struct Place : ProductLane, BlockAtoms {
    int part;  // of the edges of an atom

    __device__ explicit Place(const StepEdges& edges)
        : BlockAtoms{blockIdx.x * int64_t{S::kAtoms}, edges.atom_count}, part(warp % S::kParts) {}

    // Calls action(row) for the atoms whose edges this warp has.
    template <class Action>
    __device__ __forceinline__ void for_own_atoms(const Action& action) const {
        for (int row = warp / S::kParts; row < S::kAtoms && has(row); row += S::kWarps / S::kParts) action(row);
    }
};

// The elements that occur among the senders of a block's atoms, ascending.
struct SenderElements {
    static constexpr int kMost = 128;
    static_assert(kMost >= kMaxAtomicNumber);
    int occurs[kMost], element[kMost], count;
};

// All threads call it, before await_predecessor(): the kernels that select edges end before the predecessor goes on,
// which computes functions of edges or updates atoms.
template <class S>
__device__ __forceinline__ void find_sender_elements(const Place<S>& place, const StepEdges& edges,
                                                     SenderElements& found) {
    for (int i = static_cast<int>(threadIdx.x); i < SenderElements::kMost; i += S::kThreads) found.occurs[i] = 0;
    __syncthreads();
    const int64_t end = edges.first[min(place.first_atom + S::kAtoms, place.atom_count)];
    for (int64_t edge = edges.first[place.first_atom] + threadIdx.x; edge < end; edge += S::kThreads)
        found.occurs[__ldg(edges.elements + __ldg(edges.sender + edge))] = 1;  // no race: all write the same value
    __syncthreads();
    if (place.warp == 0) {
        int count = 0;
        for (int first = 0; first < SenderElements::kMost; first += 32) {
            const unsigned here = __ballot_sync(kAllLanes, found.occurs[first + place.lane]);
            if (here >> place.lane & 1)
                found.element[count + __popc(here & ((1u << place.lane) - 1))] = first + place.lane;
            count += __popc(here);
        }
        if (place.lane == 0) found.count = count;
    }
    __syncthreads();
}

// Up to kPassElements elements, and kPassFunctions functions.
struct Pass {
    const int* elements;
    int element_count;
    bool is_first;
    int functions;  // number of the pass through the functions

    __device__ __forceinline__ int first_group() const { return functions * kPassGroups; }
    static constexpr int kNoElement = -1, kNoEdge = -2;
    __device__ __forceinline__ int element(int slot) const {
        return slot < element_count ? elements[slot] : kNoElement;
    }
};

// Calls action(pass) for all passes: at least one, even if there are no edges.
template <class Action>
__device__ __forceinline__ void for_passes(const SenderElements& found, int group_count, const Action& action) {
    int first = 0;
    do {
        for (int i = 0; i < function_passes(group_count); ++i)
            action(Pass{found.element + first, min(found.count - first, kPassElements), first == 0 && i == 0, i});
        first += kPassElements;
    } while (first < found.count);
}

// Where the matrix of an element is in FirstMatrices. `part` is 0 for s and 1 for u.
template <class S>
__device__ __forceinline__ const typename S::Real* matrix_of(const typename S::Real* matrices, int element, int part,
                                                             int function_pass, int group_count) {
    return matrices + (int64_t{element * kFirstParts + part} * function_passes(group_count) + function_pass) *
                          (kPassFunctions * S::kWidth);
}

// The component of a lane's rows g and g + 8 of moments, and the elements of these rows.
struct MomentRows {
    int component, top, bottom;

    __device__ MomentRows(const ProductLane& lane, const Pass& pass)
        : component(lane.g % kComponents),
          top(pass.element(lane.g / kComponents)),
          bottom(pass.element(2 + lane.g / kComponents)) {}
};

// The edges of an atom, numbered from 0. Except for element(), numbers beyond the last edge stand for the last one, and
// so do numbers of groups. What comes of them is not used, or multiplied by zero.
template <class Stored>
struct AtomEdges {
    using Real = RealOf<Stored>;
    using Group = typename FunctionLayout<Stored>::Group;
    int count, group_count;
    const int32_t *senders, *elements;
    const Group *values, *slopes;
    const Real* directions;

    __device__ __forceinline__ AtomEdges(const StepEdges& edges, const EdgeFunctions<Stored>& functions, int64_t atom)
        : group_count(functions.group_count), elements(edges.elements) {
        const int64_t begin = edges.first[atom];
        count = static_cast<int>(edges.first[atom + 1] - begin);
        senders = edges.sender + begin;
        values = functions.value + begin * group_count;
        slopes = functions.slope + begin * group_count;
        directions = functions.direction + 4 * begin;
    }
    // Of the sender; Pass::kNoEdge for numbers beyond the last edge.
    __device__ __forceinline__ int element(int edge) const {
        return edge < count ? __ldg(elements + __ldg(senders + edge)) : Pass::kNoEdge;
    }
    // 1, or component `component` - 1 of the direction.
    __device__ __forceinline__ Real component(int edge, int component) const {
        const Real of_direction = __ldg(directions + max(component - 1, 0) + 4 * clamped(edge));
        return component == 0 ? Real(1) : of_direction;
    }
    __device__ __forceinline__ Real inverse_distance(int edge) const {
        return __ldg(directions + 3 + 4 * clamped(edge));
    }
    __device__ __forceinline__ int clamped_group(int group) const { return min(group, group_count - 1); }
    // A group of `values` or `slopes`.
    __device__ __forceinline__ Group load(const Group* functions, int edge, int clamped_group) const {
        return load_group(functions +
                          (clamped(edge) * static_cast<unsigned>(group_count) + static_cast<unsigned>(clamped_group)));
    }

private:
    // Without a sign: addresses take fewer instructions.
    __device__ __forceinline__ unsigned clamped(int edge) const { return static_cast<unsigned>(min(edge, count - 1)); }
    __device__ __forceinline__ static uint4 load_group(const uint4* from) { return __ldg(from); }
    __device__ __forceinline__ static uint2 load_group(const uint2* from) { return __ldg(from); }
    __device__ __forceinline__ static Four<double> load_group(const Four<double>* from) { return *from; }
};

// ---- operands of two numbers ----

template <class Real>
struct alignas(2 * sizeof(Real)) Two {
    Real of[2];
};
template <class Real>
__device__ __forceinline__ Two<Real> load_pair(const Real* from) {
    return *reinterpret_cast<const Two<Real>*>(from);
}

// Numbers of half precision are TF32 numbers.
__device__ __forceinline__ SplitNumbers<2> operand_of_halves(uint32_t high, uint32_t low) {
    __half of_high[2], of_low[2];
    memcpy(of_high, &high, sizeof high);
    memcpy(of_low, &low, sizeof low);
    return {{__float_as_uint(__half2float(of_high[0])), __float_as_uint(__half2float(of_high[1]))},
            {__float_as_uint(__half2float(of_low[0])), __float_as_uint(__half2float(of_low[1]))}};
}
// Functions 2 pair and 2 pair + 1 of a group.
__device__ __forceinline__ SplitNumbers<2> function_pair(const uint4& stored, int group, int group_count, int pair) {
    const GroupHalves halves(stored, group, group_count);
    return operand_of_halves(pair ? halves.high[1] : halves.high[0], pair ? halves.low[1] : halves.low[0]);
}
__device__ __forceinline__ SplitNumbers<2> function_pair(const uint2& stored, int, int, int pair) {
    return operand_of_halves(pair ? stored.y : stored.x, 0);
}
__device__ __forceinline__ Pack<double> function_pair(const Four<double>& stored, int, int, int pair) {
    return {{pair ? stored.of[2] : stored.of[0], pair ? stored.of[3] : stored.of[1]}};
}

// Number i of both operands.
__device__ __forceinline__ SplitNumbers<2> take_from_both(const SplitNumbers<2>& a, const SplitNumbers<2>& b, int i) {
    return {{a.high[i], b.high[i]}, {a.low[i], b.low[i]}};
}
__device__ __forceinline__ Pack<double> take_from_both(const Pack<double>& a, const Pack<double>& b, int i) {
    return {{a.of[i], b.of[i]}};
}

// Numbers that are not kept become zero.
__device__ __forceinline__ SplitNumbers<2> keep(const SplitNumbers<2>& x, bool keep_first, bool keep_second) {
    return {{keep_first ? x.high[0] : 0, keep_second ? x.high[1] : 0},
            {keep_first ? x.low[0] : 0, keep_second ? x.low[1] : 0}};
}
__device__ __forceinline__ Pack<double> keep(const Pack<double>& x, bool keep_first, bool keep_second) {
    return {{keep_first ? x.of[0] : 0, keep_second ? x.of[1] : 0}};
}

// ---- forward ----

// Writes the moments of an atom to `to` in shared memory. Lane 4 g + q loads group g of edges q, q + 4, q + 8, q + 12
// of every 16. Function t of these groups is a column of tile t. Elements are loaded one turn ahead.
template <class S>
__device__ __forceinline__ void build_moments(const Place<S>& place, const FirstMessages<typename S::Stored>& stage,
                                              const Pass& pass, int64_t atom, typename S::Real* to) {
    using Real = typename S::Real;
    constexpr int kAtOnce = 16;
    const MomentRows rows(place, pass);
    const AtomEdges<typename S::Stored> edges(stage.edges, stage.functions, atom);
    const int group = edges.clamped_group(pass.first_group() + place.g);
    Real sum[2][2][4] = {};  // [pair of functions][function]
    int next_element = edges.element(kAtOnce * place.part + place.lane % kAtOnce);
    for (int first = kAtOnce * place.part; first < edges.count; first += kAtOnce * S::kParts) {
        typename S::Group groups[4];
        Real components[4];
        int elements[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int edge = first + 4 * i + place.q;
            groups[i] = edges.load(edges.values, edge, group);
            components[i] = edges.component(edge, rows.component);
            elements[i] = __shfl_sync(kAllLanes, next_element, 4 * i + place.q);
        }
        next_element = edges.element(first + kAtOnce * S::kParts + place.lane % kAtOnce);
#pragma unroll
        for (int i = 0; i < 4; i += 2) {
            const Real both[2] = {components[i], components[i + 1]};
            const auto row = S::Product::split(both);
            const auto top = keep(row, elements[i] == rows.top, elements[i + 1] == rows.top),
                       bottom = keep(row, elements[i] == rows.bottom, elements[i + 1] == rows.bottom);
#pragma unroll
            for (int pair = 0; pair < 2; ++pair) {
                const auto a = function_pair(groups[i], group, edges.group_count, pair),
                           b = function_pair(groups[i + 1], group, edges.group_count, pair);
                S::Product::add(top, bottom, {take_from_both(a, b, 0), take_from_both(a, b, 1)}, sum[pair]);
            }
        }
    }
    if (2 * place.q >= kPassGroups) return;  // columns 2 q and 2 q + 1 of tiles are groups
#pragma unroll
    for (int i = 0; i < 4; ++i)
        store_four(to + (place.g + i / 2 * 8) * kPassFunctions + 8 * place.q + 4 * (i % 2),
                   {{sum[0][0][i], sum[0][1][i], sum[1][0][i], sum[1][1][i]}});
}

// Scalars and vectors of an atom: four channels from `channel` on.
template <class S>
struct ReceivedRows {
    using Real = typename S::Real;
    const FirstMessages<typename S::Stored>& stage;
    int64_t atom;
    int channel;

    __device__ __forceinline__ Real* row(int m) const {
        return (m == 0 ? stage.scalars + atom * S::kWidth : stage.vectors + (3 * atom + m - 1) * S::kWidth) + channel;
    }
    // What the passes before have summed.
    __device__ __forceinline__ Four<Real> before(int m, bool is_first_pass) const {
        if (!is_first_pass) return load_four(row(m));
        return m == 0 ? load_four(stage.embedding + int64_t{stage.edges.elements[atom]} * S::kWidth + channel)
                      : Four<Real>{};
    }
};

// Calls action(rows, tile, i) for the atoms and channels of a lane. Sums 2 i and 2 i + 1 of `tile` and of the next tile
// are their four channels.
template <class S, class Action>
__device__ __forceinline__ void for_received(const Place<S>& place, const FirstMessages<typename S::Stored>& stage,
                                             const Action& action) {
#pragma unroll
    for (int i = 0; i < (S::kHasBottom ? 2 : 1); ++i) {
        const int row = place.g + 8 * i;
        if (row >= S::kAtoms || !place.has(row)) continue;
#pragma unroll
        for (int tile = 0; tile < S::kTiles; tile += 2)
            action(ReceivedRows<S>{stage, place.first_atom + row, place.warp * S::kColumns + 8 * tile + 4 * place.q},
                   tile, i);
    }
}

// Adds the products of the pass's moments and matrices to scalars and vectors. The rows of tiles are atoms. `moments`
// is [part][atom]. The sum over elements goes on from what the passes before have written, so that it does not depend
// on which elements share a pass.
template <class S>
__device__ __forceinline__ void multiply_moments(const Place<S>& place, const FirstMessages<typename S::Stored>& stage,
                                                 const Pass& pass, const typename S::Real* moments) {
    using Real = typename S::Real;
    Real sum[kComponents][S::kTiles][4] = {};
    for_received(place, stage, [&](const ReceivedRows<S>& rows, int tile, int i) {
#pragma unroll
        for (int m = 0; m < kComponents; ++m) {
            const Four<Real> before = rows.before(m, pass.is_first);
#pragma unroll
            for (int c = 0; c < 4; ++c) sum[m][tile + c / 2][2 * i + c % 2] = before.of[c] / kValueUnscale<Real>;
        }
    });
    const auto load_rows = [&](int row, int at) {
        Two<Real> numbers = load_pair(moments + row * kAtomPitch + at);
#pragma unroll
        for (int part = 1; part < S::kParts; ++part) {
            const Two<Real> more = load_pair(moments + (part * S::kAtoms + row) * kAtomPitch + at);
#pragma unroll
            for (int i = 0; i < 2; ++i) numbers.of[i] += more.of[i];
        }
        return S::Product::split(numbers.of);
    };
    for (int slot = 0; slot < pass.element_count; ++slot) {
        const Real* matrices[kFirstParts];
#pragma unroll
        for (int part = 0; part < kFirstParts; ++part)
            matrices[part] = matrix_of<S>(stage.matrices.forward, pass.elements[slot], part, pass.functions,
                                          stage.functions.group_count) +
                             place.warp * (S::kColumns * kShortDepth) + 4 * place.lane;
#pragma unroll(S::kIsFew ? kFunctionSteps : 1)
        for (int step = 0; step < kFunctionSteps; ++step) {
            typename S::Operand columns[kFirstParts][S::kTiles];
#pragma unroll
            for (int part = 0; part < kFirstParts; ++part)
#pragma unroll
                for (int tile = 0; tile < S::kTiles; tile += 2) {
                    const Four<Real> both = load_four(matrices[part] + (step * S::kWidth + 8 * tile) * kShortDepth);
                    columns[part][tile] = S::Product::split({both.of[0], both.of[1]});
                    columns[part][tile + 1] = S::Product::split({both.of[2], both.of[3]});
                }
#pragma unroll
            for (int m = 0; m < kComponents; ++m) {
                const int at = (slot * kComponents + m) * kPassFunctions + step * kShortDepth + 2 * place.q;
                const auto top = load_rows(min(place.g, S::kAtoms - 1), at);
                typename S::Operand bottom = {};
                if constexpr (S::kHasBottom) bottom = load_rows(place.g + 8, at);
                S::Product::add(top, bottom, columns[m == 0 ? 0 : 1], sum[m]);
            }
        }
    }
    for_received(place, stage, [&](const ReceivedRows<S>& rows, int tile, int i) {
#pragma unroll
        for (int m = 0; m < kComponents; ++m) {
            Four<Real> after;
#pragma unroll
            for (int c = 0; c < 4; ++c) after.of[c] = kValueUnscale<Real> * sum[m][tile + c / 2][2 * i + c % 2];
            store_four(rows.row(m), after);
        }
    });
}

template <class S>
__global__ void __launch_bounds__(S::kThreads, S::kBlocks)
    sum_kernel(const __grid_constant__ FirstMessages<typename S::Stored> stage) {
    using Real = typename S::Real;
    __shared__ SenderElements senders;
    auto* moments = reinterpret_cast<Real*>(launched_shared_memory());
    const Place<S> place(stage.edges);
    find_sender_elements(place, stage.edges, senders);
    await_predecessor();
    for_passes(senders, stage.functions.group_count, [&](const Pass& pass) {
        place.for_own_atoms([&](int row) {
            build_moments(place, stage, pass, place.first_atom + row,
                          moments + (place.part * S::kAtoms + row) * kAtomPitch);
        });
        __syncthreads();
        multiply_moments(place, stage, pass, moments);
        __syncthreads();
    });
}

// ---- reverse ----

// Writes the gradients of all moments of the pass to shared memory, [atom]. Warps divide the elements and components.
// The rows of tiles are atoms, the columns functions, and channels are the depth.
template <class S>
__device__ __forceinline__ void reverse_moments(const Place<S>& place,
                                                const FirstMessagesReverse<typename S::Stored>& stage, const Pass& pass,
                                                typename S::Real* gradients) {
    using Real = typename S::Real;
    constexpr int kCount = Pack<Real>::kCount;
    for (int unit = place.warp; unit < kComponents * pass.element_count; unit += S::kWarps) {
        const int m = unit % kComponents;
        const Real* matrix = matrix_of<S>(stage.matrices.transposed, pass.elements[unit / kComponents], m == 0 ? 0 : 1,
                                          pass.functions, stage.functions.group_count) +
                             kCount * place.lane;
        const auto row_of = [&](int row) {
            return stage.gradient + (place.clamped_atom(row) * kGradientRows + m) * S::kWidth + kCount * place.q;
        };
        const Real *top_row = row_of(min(place.g, S::kAtoms - 1)), *bottom_row = row_of(place.g + 8);
        Real sum[kFunctionTiles][4] = {};
#pragma unroll(S::kStepsAtOnce)
        for (int step = 0; step < S::kWidth / kStep<Real>; ++step) {
            const auto top = S::Product::split(load_pack(top_row + step * kStep<Real>));
            typename S::Product::Operand bottom = {}, columns[kFunctionTiles];
            if constexpr (S::kHasBottom) bottom = S::Product::split(load_pack(bottom_row + step * kStep<Real>));
#pragma unroll
            for (int tile = 0; tile < kFunctionTiles; ++tile)
                columns[tile] = S::Product::split(load_pack(matrix + (step * kFunctionTiles + tile) * (32 * kCount)));
            if constexpr (S::kIsFew)
                S::Product::add_abreast(top, bottom, columns, sum);
            else
                S::Product::add(top, bottom, columns, sum);
        }
#pragma unroll
        for (int bottom = 0; bottom < (S::kHasBottom ? 2 : 1); ++bottom) {
            const int row = place.g + 8 * bottom;
            if (row >= S::kAtoms) continue;
#pragma unroll
            for (int tile = 0; tile < kFunctionTiles; ++tile)
#pragma unroll
                for (int i = 0; i < 2; ++i)
                    gradients[row * kAtomPitch + unit * kPassFunctions + 8 * tile + 2 * place.q + i] =
                        sum[tile][2 * bottom + i];
        }
    }
}

// Functions of an edge as columns of products, in the order of MomentGradients.
template <class S>
__device__ __forceinline__ void load_columns(const Place<S>& place, const AtomEdges<typename S::Stored>& edges,
                                             const typename S::Group* functions, int edge, int first_group,
                                             typename S::Operand (&steps)[kFunctionSteps]) {
    const int group = edges.clamped_group(first_group + place.q),
              last_group = edges.clamped_group(first_group + 4 + place.q / 2);
    const auto stored = edges.load(functions, edge, group), last = edges.load(functions, edge, last_group);
    steps[0] = function_pair(stored, group, edges.group_count, 0);
    steps[1] = function_pair(stored, group, edges.group_count, 1);
    steps[2] = function_pair(last, last_group, edges.group_count, place.q % 2);
}

// The gradients of an atom's moments as rows of products. A lane has functions 4 q, 4 q + 1 in the first step, 4 q + 2,
// 4 q + 3 in the second, and 16 + 2 q, 16 + 2 q + 1 in the last.
template <class S>
struct MomentGradients {
    typename S::Operand top[kFunctionSteps], bottom[kFunctionSteps];

    __device__ __forceinline__ MomentGradients(const Place<S>& place, const typename S::Real* gradients) {
        load(gradients + place.g * kPassFunctions, place.q, top);
        load(gradients + (place.g + 8) * kPassFunctions, place.q, bottom);
    }

private:
    __device__ __forceinline__ static void load(const typename S::Real* row, int q,
                                                typename S::Operand (&steps)[kFunctionSteps]) {
        const auto four = load_four(row + 4 * q);
        steps[0] = S::Product::split({four.of[0], four.of[1]});
        steps[1] = S::Product::split({four.of[2], four.of[3]});
        steps[2] = S::Product::split(load_pair(row + 16 + 2 * q).of);
    }
};

template <class Real>
__device__ __forceinline__ Real sum_over_components(Real value) {
    value += __shfl_xor_sync(kAllLanes, value, 4);
    return value + __shfl_xor_sync(kAllLanes, value, 8);
}

// Adds the gradients of an atom's edges, 8 at a time, from those of its moments. Lane 4 g + q loads functions of edge
// g. Its products are for edges 2 q and 2 q + 1, whose elements choose the row. It goes on with edge 2 q + g / 4 and
// component g % 4. Elements are loaded one turn ahead.
template <class S>
__device__ __forceinline__ void add_edge_gradients(const Place<S>& place,
                                                   const FirstMessagesReverse<typename S::Stored>& stage,
                                                   const Pass& pass, int64_t atom, const typename S::Real* gradients) {
    using Real = typename S::Real;
    const MomentRows rows(place, pass);
    const MomentGradients<S> moments(place, gradients);
    const AtomEdges<typename S::Stored> edges(stage.edges, stage.functions, atom);
    double* vector_gradient = stage.vector_gradient + 3 * stage.edges.first[atom];
    const int which = place.g / kComponents;
    int next_element = edges.element(kEdgesPerTile * place.part + place.lane % kEdgesPerTile);
    for (int first = kEdgesPerTile * place.part; first < edges.count; first += kEdgesPerTile * S::kParts) {
        typename S::Operand values[kFunctionSteps], slopes[kFunctionSteps];
        load_columns(place, edges, edges.values, first + place.g, pass.first_group(), values);
        load_columns(place, edges, edges.slopes, first + place.g, pass.first_group(), slopes);
        int elements[2];
#pragma unroll
        for (int j = 0; j < 2; ++j) elements[j] = __shfl_sync(kAllLanes, next_element, 2 * place.q + j);
        next_element = edges.element(first + kEdgesPerTile * S::kParts + place.lane % kEdgesPerTile);
        const int own = first + 2 * place.q + which;
        const Real component = edges.component(own, rows.component), inverse_distance = edges.inverse_distance(own);
        const bool is_written = rows.component > 0 && own < edges.count;
        double* to = vector_gradient + 3 * own + rows.component - 1;
        const double before = is_written ? *to : 0;

        Real sum[2][4] = {};  // values, slopes
#pragma unroll
        for (int step = 0; step < kFunctionSteps; ++step)
            S::Product::add_to_step(moments.top[step], moments.bottom[step], {values[step], slopes[step]}, sum);
        Real of_own[2];
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            Real of_edge[2];
#pragma unroll
            for (int j = 0; j < 2; ++j)
                of_edge[j] = elements[j] == rows.top ? sum[i][j] : elements[j] == rows.bottom ? sum[i][2 + j] : Real(0);
            of_own[i] =
                (which ? of_edge[1] : of_edge[0]) + __shfl_xor_sync(kAllLanes, which ? of_edge[0] : of_edge[1], 16);
        }
        const Real turn = rows.component == 0 ? Real(0) : of_own[0];
        const Real by_distance = sum_over_components(of_own[1] * component),
                   radial = sum_over_components(turn * component);
        if (is_written)
            *to = before + static_cast<double>(by_distance * component +
                                               kValueUnscale<Real> * (turn - radial * component) * inverse_distance);
    }
}

template <class S>
__global__ void __launch_bounds__(S::kThreads, S::kBlocks)
    reverse_kernel(const __grid_constant__ FirstMessagesReverse<typename S::Stored> stage) {
    using Real = typename S::Real;
    __shared__ SenderElements senders;
    auto* gradients = reinterpret_cast<Real*>(launched_shared_memory());
    const Place<S> place(stage.edges);
    find_sender_elements(place, stage.edges, senders);
    await_predecessor();
    for_passes(senders, stage.functions.group_count, [&](const Pass& pass) {
        reverse_moments(place, stage, pass, gradients);
        __syncthreads();
        place.for_own_atoms([&](int row) {
            add_edge_gradients(place, stage, pass, place.first_atom + row, gradients + row * kAtomPitch);
        });
        __syncthreads();
    });
}

template <class S, class Stage>
void launch_shape(const char* doing, void (*kernel)(Stage), const Stage& stage, cudaStream_t stream) {
    const int64_t blocks = (int64_t{stage.edges.atom_count} + S::kAtoms - 1) / S::kAtoms;
    launch(doing, kernel, {dim3(static_cast<unsigned>(blocks)), S::kThreads, S::kSharedBytes}, stream, stage);
}
template <class S>
void launch_sum(const FirstMessages<typename S::Stored>& stage, cudaStream_t stream) {
    launch_shape<S>("messages", sum_kernel<S>, stage, stream);
}
template <class S>
void launch_reverse(const FirstMessagesReverse<typename S::Stored>& stage, cudaStream_t stream) {
    launch_shape<S>("reversing messages", reverse_kernel<S>, stage, stream);
}

}  // namespace

template <class Stored>
void sum_first_messages(int width, const FirstMessages<Stored>& stage, cudaStream_t stream) {
    if (stage.edges.atom_count == 0) return;
    with_width(width, [&](auto F) {
        if (stage.edges.atom_count <= few_atoms_for_first_messages())
            launch_sum<ForwardShape<Stored, F, kFewAtoms>>(stage, stream);
        else
            launch_sum<ForwardShape<Stored, F, kManyAtoms>>(stage, stream);
    });
}
template <class Stored>
void reverse_first_messages(int width, const FirstMessagesReverse<Stored>& stage, cudaStream_t stream) {
    if (stage.edges.atom_count == 0) return;
    with_width(width, [&](auto F) {
        if (stage.edges.atom_count <= few_atoms_for_first_messages())
            launch_reverse<ReverseShape<Stored, F, kFewAtoms>>(stage, stream);
        else
            launch_reverse<ReverseShape<Stored, F, kManyAtoms>>(stage, stream);
    });
}

template void sum_first_messages(int, const FirstMessages<float>&, cudaStream_t);
template void sum_first_messages(int, const FirstMessages<__half>&, cudaStream_t);
template void sum_first_messages(int, const FirstMessages<double>&, cudaStream_t);
template void reverse_first_messages(int, const FirstMessagesReverse<float>&, cudaStream_t);
template void reverse_first_messages(int, const FirstMessagesReverse<__half>&, cudaStream_t);
template void reverse_first_messages(int, const FirstMessagesReverse<double>&, cudaStream_t);

}  // namespace mlff::painn::gpu
