// SPDX-License-Identifier: MIT
// The symmetric contraction as one list of monomials, which any number of walkers (warps) divide among them.
//
// A walker processes a stretch of the list by Horner's rule. It keeps the factors of the present product, one for each
// level, and the sum below each of them. Monomials are in preorder, so a monomial of level n belongs below the last
// monomials of levels 1 to n - 1. The same code runs on the CPU, where tests check it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/buffer.h"
#include "core/host_device.h"
#include "mace/plan/names.h"
#include "mace/weights/weights.h"

namespace mlff::mace::gpu {

inline constexpr int kLanes = 32;           // channels of a warp
inline constexpr int kMonomialsAtOnce = 8;  // the stretch of a walker begins and ends at multiples of this

// Packed in one number, so that several are one load. The level is in the highest bits, so numbers compare like levels.
class Monomial {
public:
    Monomial() = default;
    Monomial(int row, int level, bool has_coefficient)
        : bits_(static_cast<uint32_t>(level) << kLevelShift | (has_coefficient ? kHasCoefficient : 0) |
                static_cast<uint32_t>(row)) {}

    // The number of factors; 0: a new row of the result begins.
    MLFF_HOST_DEVICE int level() const { return static_cast<int>(bits_ >> kLevelShift); }
    MLFF_HOST_DEVICE int row() const { return static_cast<int>(bits_ & 0xffff); }  // its last factor
    // If not, it only leads to other monomials.
    MLFF_HOST_DEVICE bool has_coefficient() const { return (bits_ & kHasCoefficient) != 0; }
    MLFF_HOST_DEVICE bool is_at_least(int level) const { return bits_ >= static_cast<uint32_t>(level) << kLevelShift; }

private:
    static constexpr int kLevelShift = 24;
    static constexpr uint32_t kHasCoefficient = 1 << 16;
    uint32_t bits_ = 0;
};

// Where in the tree a walker starts: the row of the result, and the factors above.
struct MonomialPath {
    int16_t out_row = -1;
    uint16_t rows[kMaxCorrelation - 1] = {};  // [level - 1]
};

struct MonomialList {
    explicit MonomialList(const plan::Polynomial& polynomial);

    // Sets has_coefficient() if it is not zero for some channel. `coefficients` are those of the polynomial:
    // [channel / 16][coefficient][16].
    template <class Real>
    std::vector<Monomial> of_element(const Buffer<Real>& coefficients, int stride) const;
    // Returns [channel / kLanes][monomial][kLanes], padded with zeros.
    template <class Real>
    Buffer<Real> pack(const Buffer<Real>& coefficients, int stride) const;

    // Which monomial each of the pattern is (contraction_pattern.h), -1 for those that are not there and for padding:
    // [group][4]. Empty if not all monomials are among them, or if they are few of them.
    std::vector<int32_t> in_pattern(const plan::Polynomial& polynomial) const;
    // The same coefficients in that order: [channel / kLanes][group][kLanes][4].
    template <class Real>
    Buffer<Real> pack(const Buffer<Real>& coefficients, int stride, const std::vector<int32_t>& pattern) const;

    int count = 0;                    // of monomials: one for each coefficient, in the same order
    int depth = 0;                    // the highest level
    std::vector<Monomial> monomials;  // followed by idle ones, so that a walker may read ahead
    std::vector<MonomialPath> paths;  // before every kMonomialsAtOnce of them, and after the last
};

struct MonomialStretch {
    int begin = 0, end = 0;
};
// Equal parts, because a monomial costs about the same at every level.
MLFF_HOST_DEVICE inline MonomialStretch stretch_of(int walker, int walker_count, int group_count) {
    return {kMonomialsAtOnce * (group_count * walker / walker_count),
            kMonomialsAtOnce * (group_count * (walker + 1) / walker_count)};
}

template <class Real, int Atoms>
struct AtomValues {
    Real of[Atoms];

    MLFF_HOST_DEVICE void set(Real x) {
        for (int a = 0; a < Atoms; ++a) of[a] = x;
    }
    MLFF_HOST_DEVICE void add_product(const AtomValues& x, Real y) {
        for (int a = 0; a < Atoms; ++a) of[a] += x.of[a] * y;
    }
    MLFF_HOST_DEVICE void add_product(const AtomValues& x, const AtomValues& y) {
        for (int a = 0; a < Atoms; ++a) of[a] += x.of[a] * y.of[a];
    }
};

// One lane of rows [row][kLanes] of several atoms. The numbers of the atoms are adjacent, up to 16 bytes: one access.
template <class Real, int Atoms>
class LaneRows {
public:
    static constexpr int kRowSize = kLanes * Atoms;  // numbers

    LaneRows() = default;
    MLFF_HOST_DEVICE LaneRows(Real* rows, int lane) : first_(reinterpret_cast<Pack*>(rows) + lane) {}

    MLFF_HOST_DEVICE AtomValues<Real, Atoms> load(int row) const {
        AtomValues<Real, Atoms> values;
        for (int p = 0; p < kPacks; ++p) {
            const Pack pack = first_[(row * kPacks + p) * kLanes];
            for (int a = 0; a < kPack; ++a) values.of[p * kPack + a] = pack.of[a];
        }
        return values;
    }
    MLFF_HOST_DEVICE void store(int row, const AtomValues<Real, Atoms>& values) const {
        for (int p = 0; p < kPacks; ++p) {
            Pack pack;
            for (int a = 0; a < kPack; ++a) pack.of[a] = values.of[p * kPack + a];
            first_[(row * kPacks + p) * kLanes] = pack;
        }
    }
    template <class Factor>
    MLFF_HOST_DEVICE void add_product(int row, const AtomValues<Real, Atoms>& x, const Factor& y) const {
        AtomValues<Real, Atoms> sum = load(row);
        sum.add_product(x, y);
        store(row, sum);
    }

private:
    static constexpr int kWidest = 16 / static_cast<int>(sizeof(Real));
    static constexpr int kPack = Atoms < kWidest ? Atoms : kWidest;
    static constexpr int kPacks = Atoms / kPack;
    static_assert(Atoms % kPack == 0);
    struct alignas(kPack * sizeof(Real)) Pack {
        Real of[kPack];
    };
    Pack* first_ = nullptr;
};

// Writes what a stretch contributes to rows of the result to sums[out_row + walker], which no other walker writes.
template <class Real, int Atoms, int Depth>
class ForwardWalk {
public:
    MLFF_HOST_DEVICE ForwardWalk(const MonomialPath& path, LaneRows<Real, Atoms> in, LaneRows<Real, Atoms> sums,
                                 int walker)
        : in_(in), sums_(sums), walker_(walker), out_row_(path.out_row) {
        value_[0].set(0);
        for (int level = 1; level < Depth; ++level) {
            factor_[level] = in_.load(path.rows[level - 1]);
            value_[level].set(0);
        }
    }

    MLFF_HOST_DEVICE void add(Monomial monomial, Real coefficient) {
        const AtomValues<Real, Atoms> factor = in_.load(monomial.row());
        if (monomial.is_at_least(Depth))
            value_[Depth - 1].add_product(factor, coefficient);
        else
            begin_branch<Depth - 1>(monomial, factor, coefficient);
    }
    MLFF_HOST_DEVICE void finish() {
        for (int level = Depth - 1; level > 0; --level) value_[level - 1].add_product(factor_[level], value_[level]);
        write_sum();
    }

private:
    // Ends the branches from `Level` up to the one that the new branch replaces.
    template <int Level>
    MLFF_HOST_DEVICE void begin_branch(Monomial monomial, const AtomValues<Real, Atoms>& factor, Real coefficient) {
        if constexpr (Level == 0) {
            write_sum();
            ++out_row_;
            value_[0].set(coefficient);
        } else {
            value_[Level - 1].add_product(factor_[Level], value_[Level]);
            if (monomial.level() == Level) {
                factor_[Level] = factor;
                value_[Level].set(coefficient);
            } else {
                value_[Level].set(0);
                begin_branch<Level - 1>(monomial, factor, coefficient);
            }
        }
    }
    MLFF_HOST_DEVICE void write_sum() {
        if (out_row_ >= 0) sums_.store(out_row_ + walker_, value_[0]);
    }

    LaneRows<Real, Atoms> in_, sums_;
    int walker_, out_row_;
    AtomValues<Real, Atoms> value_[Depth], factor_[Depth];
};

// Adds up what the walkers contribute to a row of the result, always in the same order.
template <class Real, int Atoms>
MLFF_HOST_DEVICE AtomValues<Real, Atoms> joined_sum(const MonomialPath* paths, int group_count, int walker_count,
                                                    int out_row, LaneRows<Real, Atoms> sums) {
    AtomValues<Real, Atoms> sum;
    sum.set(0);
    int begin_row = paths[0].out_row;
    for (int walker = 0; walker < walker_count; ++walker) {
        const int end_row = paths[stretch_of(walker, walker_count, group_count).end / kMonomialsAtOnce].out_row;
        const bool has_part = begin_row <= out_row && out_row <= end_row;
        const AtomValues<Real, Atoms> part = sums.load(out_row + walker);  // loads even if has_part is false: no branch
        for (int a = 0; a < Atoms; ++a) sum.of[a] += has_part ? part.of[a] : Real(0);
        begin_row = end_row;
    }
    return sum;
}

// Adds what the monomials of a stretch contribute to in_gradient, which is that of this walker alone.
template <class Real, int Atoms, int Depth>
class ReverseWalk {
public:
    MLFF_HOST_DEVICE ReverseWalk(const MonomialPath& path, LaneRows<Real, Atoms> in, LaneRows<Real, Atoms> out_gradient,
                                 LaneRows<Real, Atoms> in_gradient)
        : in_(in), out_gradient_(out_gradient), in_gradient_(in_gradient), out_row_(path.out_row) {
        if (out_row_ >= 0)
            gradient_[0] = out_gradient_.load(out_row_);
        else
            gradient_[0].set(0);
        for (int level = 1; level < Depth; ++level)
            enter(level, path.rows[level - 1], in_.load(path.rows[level - 1]), 0);
    }

    MLFF_HOST_DEVICE void add(Monomial monomial, Real coefficient) {
        const AtomValues<Real, Atoms> factor = in_.load(monomial.row());
        if (monomial.is_at_least(Depth)) {
            value_[Depth - 1].add_product(factor, coefficient);
            in_gradient_.add_product(monomial.row(), gradient_[Depth - 1], coefficient);
        } else {
            begin_branch<Depth - 1>(monomial, factor, coefficient);
        }
    }
    MLFF_HOST_DEVICE void finish() {
        for (int level = Depth - 1; level > 0; --level) leave(level);
    }

private:
    template <int Level>
    MLFF_HOST_DEVICE void begin_branch(Monomial monomial, const AtomValues<Real, Atoms>& factor, Real coefficient) {
        if constexpr (Level == 0) {
            ++out_row_;
            gradient_[0] = out_gradient_.load(out_row_);
        } else {
            leave(Level);
            if (monomial.level() == Level) {
                enter(Level, monomial.row(), factor, coefficient);
            } else {
                value_[Level].set(0);
                begin_branch<Level - 1>(monomial, factor, coefficient);
            }
        }
    }
    MLFF_HOST_DEVICE void enter(int level, int row, const AtomValues<Real, Atoms>& factor, Real coefficient) {
        row_[level] = row;
        factor_[level] = factor;
        value_[level].set(coefficient);
        for (int a = 0; a < Atoms; ++a) gradient_[level].of[a] = gradient_[level - 1].of[a] * factor.of[a];
    }
    MLFF_HOST_DEVICE void leave(int level) {
        in_gradient_.add_product(row_[level], gradient_[level - 1], value_[level]);
        if (level > 1) value_[level - 1].add_product(factor_[level], value_[level]);
    }

    LaneRows<Real, Atoms> in_, out_gradient_, in_gradient_;
    int out_row_;
    int row_[Depth];
    AtomValues<Real, Atoms> value_[Depth], factor_[Depth], gradient_[Depth];
};

// Loads monomials two steps before they are needed, and coefficients one step before.
template <int AtOnce, class Real, class Walk>
class MonomialReader {
    static_assert(kMonomialsAtOnce % AtOnce == 0 && AtOnce % 4 == 0);

public:
    // `coefficients` is [monomial][kLanes], beginning at this lane.
    MLFF_HOST_DEVICE MonomialReader(const Monomial* monomials, const Real* coefficients)
        : monomials_(monomials), coefficients_(coefficients) {}

    MLFF_HOST_DEVICE void read(MonomialStretch stretch, Walk& walk) const {
        if (stretch.begin == stretch.end) return;
        Monomials now = fetch(stretch.begin), next = fetch(stretch.begin + AtOnce);
        Coefficients coefficients = fetch_coefficients(now, stretch.begin);
        for (int at = stretch.begin; at < stretch.end; at += AtOnce) {
            const Monomials after_next = fetch(at + 2 * AtOnce);
            Coefficients next_coefficients = coefficients;
            if (at + AtOnce < stretch.end) next_coefficients = fetch_coefficients(next, at + AtOnce);
            add<0>(now, coefficients, walk);
            now = next;
            next = after_next;
            coefficients = next_coefficients;
        }
    }

private:
    struct alignas(16) Monomials {
        Monomial of[AtOnce];
    };
    struct Coefficients {
        Real of[AtOnce];
    };

    MLFF_HOST_DEVICE Monomials fetch(int at) const { return *reinterpret_cast<const Monomials*>(monomials_ + at); }
    MLFF_HOST_DEVICE Coefficients fetch_coefficients(const Monomials& monomials, int at) const {
        Coefficients coefficients;
        for (int i = 0; i < AtOnce; ++i)
            coefficients.of[i] = monomials.of[i].has_coefficient() ? coefficients_[int64_t{at + i} * kLanes] : Real(0);
        return coefficients;
    }
    template <int Index>  // recursion instead of a loop, so that the arrays stay in registers
    MLFF_HOST_DEVICE void add(const Monomials& monomials, const Coefficients& coefficients, Walk& walk) const {
        if constexpr (Index < AtOnce) {
            walk.add(monomials.of[Index], coefficients.of[Index]);
            add<Index + 1>(monomials, coefficients, walk);
        }
    }

    const Monomial* monomials_;
    const Real* coefficients_;
};

}  // namespace mlff::mace::gpu
