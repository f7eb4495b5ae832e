// SPDX-License-Identifier: MIT
// How a warp takes the pairs of two tiles: lanes are in a table of near lanes by far lanes. A lane holds kNearAtoms
// atoms of the near tile, and meets one atom of the far tile in each step, of the same kind in all lanes. So the sums
// of near atoms stay in registers, and those of a far atom are added up over the near lanes, once for several pairs.
#pragma once

#include "dispersion/gpu/far_tiles.cuh"
#include "dispersion/gpu/kernels.h"
#include "dispersion/tables/units.h"
#include "gpu/engine/warp.h"

namespace mlff::dispersion::gpu {

template <class Real>
inline constexpr int kNearAtoms = sizeof(Real) == sizeof(float) ? 4 : 2;
template <class Real>
inline constexpr int kNearLanes = 32 / kNearAtoms<Real>;
// Farther than any cutoff. Its 14th power overflows single precision, but its 8th does not.
inline constexpr int kNowhere = 10000;  // angstrom

struct PairLane {
    int near, far;
    template <class Real>
    __device__ static PairLane of(int lane) {
        return {lane % kNearLanes<Real>, lane / kNearLanes<Real>};
    }
};

// ---- Sums over lanes ----

// How many of `count` totals a lane has after spread_totals() over distances from `first` to `last`.
inline constexpr int kept_totals(int count, int first, int last) {
    for (int distance = first; distance >= last; distance /= 2) count = (count + 1) / 2;
    return count;
}

// Adds up values[0 ... kCount - 1] over the lanes whose numbers differ in the bits from kFirst down to kLast. The
// totals are spread over these lanes, so that each exchange halves what is left to do.
template <int kFirst, int kLast, int kCount, int kKept, class Real>
__device__ __forceinline__ void spread_totals(const Real (&values)[kCount], int lane, Real (&totals)[kKept]) {
    if constexpr (kFirst < kLast) {
        static_assert(kKept == kCount);
#pragma unroll
        for (int k = 0; k < kCount; ++k) totals[k] = values[k];
    } else {
        constexpr int kHalf = (kCount + 1) / 2;
        const bool is_upper = (lane & kFirst) != 0;
        Real half[kHalf];
#pragma unroll
        for (int k = 0; k < kHalf; ++k) {
            const bool has_two = kHalf + k < kCount;  // else both lanes get the total, and the lower one uses it
            const Real low = values[k], high = values[has_two ? kHalf + k : k];
            const Real kept = has_two && is_upper ? high : low, sent = has_two && is_upper ? low : high;
            half[k] = kept + __shfl_xor_sync(mlff::gpu::kAllLanes, sent, kFirst);
        }
        spread_totals<kFirst / 2, kLast>(half, lane, totals);
    }
}
// Which of the `count` numbers the `k`-th total of a lane is; -1: none.
__device__ inline int spread_number(int count, int first, int last, int lane, int k) {
    int number = 0, own = count, most = count;
    for (int distance = first; distance >= last; distance /= 2) {
        const int half = (most + 1) / 2;
        const bool is_upper = (lane & distance) != 0;
        if (is_upper) number += half;
        own = is_upper ? own - half : own < half ? own : half;
        most = half;
    }
    return k < own ? number + k : -1;
}

// ---- Sums of atoms ----

template <class Real = double>
__device__ Real number_of(Fixed sum) {
    return static_cast<Real>(static_cast<long long>(sum)) * Real(0x1p-48);
}
__device__ inline Fixed fixed_of(float x) { return static_cast<Fixed>(__float2ll_rn(x * 0x1p48f)); }
__device__ inline Fixed fixed_of(double x) { return static_cast<Fixed>(__double2ll_rn(x * 0x1p48)); }

template <class Real>
__device__ __forceinline__ void add(const Work<Real>& work, Fixed* to, Real x) {
    if (std::abs(x) < Real(0x1p13))
        atomicAdd(to, fixed_of(x));
    else
        *work.has_short_edge = 1;
}

// Sums of the near tile, `kCount` for each atom from `first` on, each over the far lanes.
template <int kCount, class Real>
__device__ void add_near_sums(const Work<Real>& work, const TilePart& at, int first,
                              const Real (&sums)[kNearAtoms<Real>][kCount]) {
    constexpr int kLast = kNearLanes<Real>;
    const PairLane lane = PairLane::of<Real>(at.lane);
    const int n = spread_number(kNearAtoms<Real>, 16, kLast, at.lane, 0);
    const int64_t slot = int64_t{at.tile} * kTileAtoms + lane.near + kNearLanes<Real> * n;
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
        Real of_atoms[kNearAtoms<Real>], total[1];
#pragma unroll
        for (int i = 0; i < kNearAtoms<Real>; ++i) of_atoms[i] = sums[i][k];
        spread_totals<16, kLast>(of_atoms, at.lane, total);
        add(work, work.sums + (first + k) * work.slot_count() + slot, total[0]);
    }
}

// Sums of far atoms: `kCount` from kFirst on, over the near lanes; forces have the opposite sign. Without virials of
// atoms, the virial of the pairs of two tiles is made of their offset and of the force between them, and of the forces
// on atoms and their places in the boxes: the latter part is left to write_results().
template <int kFirst, int kCount, class Real>
class FarSums {
public:
    static constexpr int kDistance = kNearLanes<Real> / 2, kKept = kept_totals(kCount, kDistance, 1);
    static constexpr int kForce = kForceSum - kFirst;  // the number of the first component
    static constexpr bool kHasTileVirial = kForce >= 0 && kForce < kCount && kFirst + kCount <= kVirialSum;

    __device__ FarSums(const Work<Real>& work, const TilePart& at) : work_(work), at_(at) {
#pragma unroll
        for (int k = 0; k < kKept; ++k) {
            number_[k] = spread_number(kCount, kDistance, 1, at.lane, k);
            sums_[k] = work.sums + (kFirst + (number_[k] > 0 ? number_[k] : 0)) * work.slot_count();
        }
    }

    // Of the pairs with the far lane's atom in `slot`. They are added to its sums if the tile does not look back.
    __device__ __forceinline__ void add_step(const Real (&values)[kCount], int64_t slot, bool is_added) {
        Real totals[kKept];
        spread_totals<kDistance, 1>(values, at_.lane, totals);
#pragma unroll
        for (int k = 0; k < kKept; ++k) {
            if constexpr (kHasTileVirial) pull_[k] += totals[k];
            if (is_added && number_[k] >= 0) add(work_, sums_[k] + slot, is_force(k) ? -totals[k] : totals[k]);
        }
    }
    // Of pairs that are seen from both ends, half of each virial counts.
    __device__ __forceinline__ void end_tile(const FarTile<Real>& far, bool is_seen_twice) {
        if constexpr (kHasTileVirial) {
#pragma unroll
            for (int k = 0; k < kKept; ++k) {
                const Real pull = is_seen_twice ? Real(0.5) * pull_[k] : pull_[k];
                for (int x = 0; x < 3; ++x) virial_[k][x] += pull * far.offset[x];
                pull_[k] = 0;
            }
        }
    }
    __device__ void add_tile_virial() const {
        if constexpr (kHasTileVirial) {
            if (!work_.virials || work_.has_atom_virials) return;
#pragma unroll
            for (int k = 0; k < kKept; ++k)
                for (int x = 0; x < 3; ++x) {
                    Real total = virial_[k][x];
                    for (int distance = 16; distance >= kNearLanes<Real>; distance /= 2)
                        total += __shfl_xor_sync(mlff::gpu::kAllLanes, total, distance);
                    if (at_.lane < kNearLanes<Real> && is_force(k))
                        add(work_, work_.tile_virials + 9 * int64_t{at_.tile} + 3 * (number_[k] - kForce) + x, total);
                }
        }
    }

private:
    __device__ bool is_force(int k) const { return number_[k] >= kForce && number_[k] < kForce + 3; }

    const Work<Real>& work_;
    const TilePart& at_;
    int number_[kKept];  // which of the sums; -1: none
    Fixed* sums_[kKept];
    Real pull_[kKept] = {}, virial_[kKept][3] = {};
};

// ---- Steps ----

// Which atoms of a far tile come within the cutoff of the near box, a bit for each.
template <class Real>
__device__ __forceinline__ unsigned atoms_within(const Work<Real>& work, const TilePart& at, const FarTile<Real>& far,
                                                 Real cutoff) {
    const Four<Real> place = work.places[int64_t{far.tile} * kTileAtoms + at.lane];
    Real square = 0;
    for (int x = 0; x < 3; ++x) {
        const Real gap = std::abs(far.offset[x] + place.at[x]) - work.boxes[at.tile].half[x];
        if (gap > 0) square += gap * gap;
    }
    const bool is_within = at.lane < work.boxes[far.tile].count && square < cutoff * cutoff * Real(1.00001);
    return __ballot_sync(mlff::gpu::kAllLanes, is_within ? 1 : 0);
}

// Deals the far atoms whose bits are set to the far lanes: step(atom, is_one). A lane for which none is left gets
// another atom again, and is_one is false.
template <class Real, class Step>
__device__ __forceinline__ void for_each_step(const TilePart& at, unsigned atoms, const Step& step) {
    __shared__ int order[mlff::gpu::kWarps][32];
    __syncwarp();
    if ((atoms >> at.lane & 1) != 0) order[at.warp][__popc(atoms & ((1u << at.lane) - 1))] = at.lane;
    __syncwarp();
    const int count = __popc(atoms), far_lane = PairLane::of<Real>(at.lane).far;
    for (int first = 0; first < count; first += kNearAtoms<Real>) {
        const int place = first + far_lane;
        step(order[at.warp][place < count ? place : 0], place < count);
    }
}

template <class Real>
struct NearAtoms {
    Four<Real> place[kNearAtoms<Real>];  // from the centre of the box, and the covalent radius
    __device__ NearAtoms(const Work<Real>& work, const TilePart& at) {
        for (int n = 0; n < kNearAtoms<Real>; ++n) {
            const int64_t slot = slot_of(at, n);
            place[n] = work.places[slot];
            if (work.kind_of_slot[slot] == work.tables.kind_count) place[n].at[0] = Real(kNowhere);
        }
    }
    __device__ static int slot_in_tile(const TilePart& at, int n) {
        return PairLane::of<Real>(at.lane).near + kNearLanes<Real> * n;
    }
    __device__ static int64_t slot_of(const TilePart& at, int n) {
        return int64_t{at.tile} * kTileAtoms + slot_in_tile(at, n);
    }
};

// Pairs nearer than this are those of an atom with itself, or refused. In single precision it is what rounding leaves
// of places in different tiles.
template <class Real>
__device__ constexpr Real least_square() {
    return sizeof(Real) == sizeof(float) ? Real(1e-8) : static_cast<Real>(kLeastSquare);
}
template <class Real>
__device__ __forceinline__ bool is_pair(Real square, Real cutoff) {
    return square < cutoff * cutoff && square > least_square<Real>();
}

}  // namespace mlff::dispersion::gpu
