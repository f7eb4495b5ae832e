// SPDX-License-Identifier: MIT
// The contraction of many atoms, if its monomials are among those of contraction_pattern.h. A warp has some atoms of an
// element, a lane one channel of them. Factors and gradients are in registers, and the monomials are the code itself,
// so that only coefficients are loaded. Included by contraction.cu only.
#pragma once

#include <utility>

#include "equivariant/gpu/path_shapes.h"
#include "gpu/engine/instructions.h"
#include "gpu/runtime/cuda_check.h"
#include "mace/gpu/contraction.h"
#include "mace/gpu/contraction_pattern.h"

namespace mlff::mace::gpu {
namespace {

constexpr int kPatternWarps = 4;  // of a block
// Of a warp. A coefficient serves all of them; in reverse each takes twice the registers.
constexpr int atoms_of_warp(bool is_reverse) { return is_reverse ? 2 : 4; }

template <class Visit, int... I>
__device__ __forceinline__ void visit_each(std::integer_sequence<int, I...>, const Visit& visit) {
    (visit(Constant<I>()), ...);
}

// The coefficients of a lane, four at a time. Those of the next groups are on their way.
class CoefficientStream {
public:
    __device__ explicit CoefficientStream(const float4* first) : first_(first) {
        visit_each(std::make_integer_sequence<int, kAhead>(),
                   [&]<int Group>(Constant<Group>) MLFF_INLINED { fetch<Group>(); });
    }
    // Called once for each monomial, in order. `Row` and `Index` of a pattern with rows up to `Last`.
    template <int Last, int Row, int Index>
    __device__ __forceinline__ float next() {
        constexpr int kGroup = first_pattern_group(Row) + Index / 4;
        if constexpr (Index % 4 == 0 && kGroup + kAhead < first_pattern_group(Last + 1)) fetch<kGroup + kAhead>();
        const uint4& four = ring_[kGroup % kRing];
        return __uint_as_float(Index % 4 == 0 ? four.x : Index % 4 == 1 ? four.y : Index % 4 == 2 ? four.z : four.w);
    }

private:
    static constexpr int kAhead = 3, kRing = kAhead + 1;
    template <int Group>
    __device__ __forceinline__ void fetch() {
        ring_[Group % kRing] = mlff::gpu::load_bytes(first_ + Group * kLanes);
    }

    const float4* first_;
    uint4 ring_[kRing];
};

// Walks one row of the result. `row` has the atoms' factors, and gradients of them in reverse.
template <int Atoms, bool kReverse>
struct PatternAtoms {
    float in[kPatternRows][Atoms], gradient[kReverse ? kPatternRows : 1][Atoms];
    // [level]: of the present product, the sum below it and the gradient of that sum
    float value[kPatternLevels][Atoms], by_value[kPatternLevels][Atoms];

    template <int Level>
    __device__ __forceinline__ void enter(int row, float coefficient) {
#pragma unroll
        for (int a = 0; a < Atoms; ++a) {
            value[Level][a] = coefficient;
            if constexpr (kReverse) by_value[Level][a] = by_value[Level - 1][a] * in[row][a];
        }
    }
    template <int Level>
    __device__ __forceinline__ void leave(int row) {
#pragma unroll
        for (int a = 0; a < Atoms; ++a) {
            if constexpr (kReverse) gradient[row][a] += by_value[Level - 1][a] * value[Level][a];
            if constexpr (!kReverse || Level > 1) value[Level - 1][a] += in[row][a] * value[Level][a];
        }
    }
    __device__ __forceinline__ void add_leaf(int row, float coefficient) {
        constexpr int kAbove = kPatternLevels - 1;
#pragma unroll
        for (int a = 0; a < Atoms; ++a) {
            value[kAbove][a] += in[row][a] * coefficient;
            if constexpr (kReverse) gradient[row][a] += by_value[kAbove][a] * coefficient;
        }
    }

    // Ends the products of levels `From` to `To` of the monomial, From >= To.
    template <int OutRow, int Index, int From, int To>
    __device__ __forceinline__ void leave_levels() {
        if constexpr (From >= To) {
            constexpr PatternMonomial monomial = kRowPattern<OutRow>.of[Index];
            leave<From>(monomial.rows[From - 1]);
            leave_levels<OutRow, Index, From - 1, To>();
        }
    }
    template <int LastRow, int OutRow>
    __device__ __forceinline__ void walk(CoefficientStream& coefficients) {
        constexpr int kCount = kRowPattern<OutRow>.count;
        visit_each(std::make_integer_sequence<int, kCount>(), [&]<int Index>(Constant<Index>) MLFF_INLINED {
            constexpr PatternMonomial monomial = kRowPattern<OutRow>.of[Index];
            constexpr int kLevel = monomial.level;
            if constexpr (Index > 0) {
                constexpr int kBefore = kRowPattern<OutRow>.of[Index - 1].level;
                leave_levels<OutRow, Index - 1, (kBefore < kPatternLevels ? kBefore : kPatternLevels - 1), kLevel>();
            }
            const float coefficient = coefficients.template next<LastRow, OutRow, Index>();
            if constexpr (kLevel == kPatternLevels)
                add_leaf(monomial.rows[kLevel - 1], coefficient);
            else
                enter<kLevel>(monomial.rows[kLevel - 1], coefficient);
        });
        constexpr int kLast = kRowPattern<OutRow>.of[kCount - 1].level;
        leave_levels<OutRow, kCount - 1, (kLast < kPatternLevels ? kLast : kPatternLevels - 1), 1>();
    }
};

// Launch: (tile, atoms of the tile / atoms of a block, channels / kLanes) blocks.
template <int OutDegree, bool kReverse>
__global__ void __launch_bounds__(kLanes* kPatternWarps, 4)
    pattern_kernel(DeviceContraction<float>::View view, TilesView tiles, RowsView<const float> in,
                   RowsView<const float> out_gradient, RowsView<float> out) {
    constexpr int kAtoms = atoms_of_warp(kReverse), kOutRows = (OutDegree + 1) * (OutDegree + 1);
    mlff::gpu::await_predecessor();
    const Tile tile = tiles.tiles[blockIdx.x];
    const int lane = static_cast<int>(threadIdx.x) % kLanes, warp = static_cast<int>(threadIdx.x) / kLanes;
    const int first = (static_cast<int>(blockIdx.y) * kPatternWarps + warp) * kAtoms;
    const int count = min(kAtoms, tile.count - first), strip = static_cast<int>(blockIdx.z);
    if (count <= 0) return;
    const int channel = min(strip * kLanes + lane, view.stride - 1);
    const bool is_channel = strip * kLanes + lane < view.stride;
    int32_t atom[kAtoms];  // the last one again where there are fewer
#pragma unroll
    for (int a = 0; a < kAtoms; ++a) atom[a] = tiles.atoms[tile.begin + first + min(a, count - 1)];
    PatternAtoms<kAtoms, kReverse> atoms;
#pragma unroll
    for (int a = 0; a < kAtoms; ++a) {
        const float* from = in.of(atom[a]) + channel;
#pragma unroll
        for (int row = 0; row < kPatternRows; ++row) {
            atoms.in[row][a] = from[row * view.stride];
            if constexpr (kReverse) atoms.gradient[row][a] = 0;
        }
    }
    CoefficientStream coefficients(reinterpret_cast<const float4*>(view.elements[tile.element].pattern_coefficients) +
                                   int64_t{strip} * first_pattern_group(kOutRows) * kLanes + lane);
    visit_each(std::make_integer_sequence<int, kOutRows>(), [&]<int OutRow>(Constant<OutRow>) MLFF_INLINED {
#pragma unroll
        for (int a = 0; a < kAtoms; ++a) {
            atoms.value[0][a] = 0;
            if constexpr (kReverse) atoms.by_value[0][a] = out_gradient.of(atom[a])[OutRow * view.stride + channel];
        }
        atoms.template walk<kOutRows - 1, OutRow>(coefficients);
        if constexpr (!kReverse) {
#pragma unroll
            for (int a = 0; a < kAtoms; ++a)
                if (a < count && is_channel) out.of(atom[a])[OutRow * view.stride + channel] = atoms.value[0][a];
        }
    });
    if constexpr (kReverse) {
#pragma unroll
        for (int a = 0; a < kAtoms; ++a)
#pragma unroll
            for (int row = 0; row < kPatternRows; ++row)
                if (a < count && is_channel) out.of(atom[a])[row * view.stride + channel] = atoms.gradient[row][a];
    }
}

}  // namespace
}  // namespace mlff::mace::gpu
