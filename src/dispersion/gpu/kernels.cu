// SPDX-License-Identifier: MIT
#include "dispersion/gpu/kernels.h"

#include "dispersion/functions/coordination.h"
#include "dispersion/gpu/far_tiles.cuh"
#include "dispersion/gpu/pair_lanes.cuh"
#include "dispersion/tables/units.h"
#include "gpu/engine/warp.h"
#include "gpu/runtime/cuda_check.h"

namespace mlff::dispersion::gpu {
namespace {

using mlff::gpu::kAllLanes;
using mlff::gpu::kBlockThreads;
using mlff::gpu::kWarps;
using mlff::gpu::SystemCell;

template <class Number>
__device__ Number least_over_warp(Number value) {
    for (int distance = 16; distance >= 1; distance /= 2) {
        const Number other = __shfl_xor_sync(kAllLanes, value, distance);
        if (other < value) value = other;
    }
    return value;
}
__device__ __forceinline__ double dot(const double* a, const double* b) {
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}
__device__ void cross(const double* a, const double* b, double* c) {
    c[0] = a[1] * b[2] - a[2] * b[1];
    c[1] = a[2] * b[0] - a[0] * b[2];
    c[2] = a[0] * b[1] - a[1] * b[0];
}
__device__ void normalize(double* a) {
    const double scale = 1 / std::sqrt(dot(a, a));
    for (int k = 0; k < 3; ++k) a[k] *= scale;
}

// Unit vectors perpendicular to the periodic ones take the place of those that are not.
__device__ Frame frame_of(const SystemCell* cell) {
    Frame frame = {};
    for (int k = 0; k < 3; ++k) frame.vectors[k][k] = 1;
    int periodic = 0, last = 0, missing = 0;
    for (int k = 0; cell && k < 3; ++k) {
        frame.periodic[k] = cell->periodic[static_cast<size_t>(k)] ? 1 : 0;
        if (frame.periodic[k] == 0) {
            missing = k;
            continue;
        }
        ++periodic;
        last = k;
        for (int x = 0; x < 3; ++x) frame.vectors[k][x] = cell->vectors[static_cast<size_t>(k)][static_cast<size_t>(x)];
    }
    if (periodic == 1) {
        double* const other[2] = {frame.vectors[(last + 1) % 3], frame.vectors[(last + 2) % 3]};
        const double* const along = frame.vectors[last];
        int axis = 0;  // the one least along the vector
        for (int x = 1; x < 3; ++x)
            if (std::abs(along[x]) < std::abs(along[axis])) axis = x;
        const double unit[3] = {axis == 0 ? 1.0 : 0.0, axis == 1 ? 1.0 : 0.0, axis == 2 ? 1.0 : 0.0};
        cross(along, unit, other[0]);
        normalize(other[0]);
        cross(along, other[0], other[1]);
        normalize(other[1]);
    } else if (periodic == 2) {
        cross(frame.vectors[(missing + 1) % 3], frame.vectors[(missing + 2) % 3], frame.vectors[missing]);
        normalize(frame.vectors[missing]);
    }
    double volume = 0;
    for (int k = 0; k < 3; ++k) {
        cross(frame.vectors[(k + 1) % 3], frame.vectors[(k + 2) % 3], frame.reciprocal[k]);
        volume = dot(frame.vectors[k], frame.reciprocal[k]);
    }
    for (int k = 0; k < 3; ++k)
        for (int x = 0; x < 3; ++x) frame.reciprocal[k][x] /= volume;
    for (int k = 0; k < 3; ++k) frame.reciprocal_length[k] = std::sqrt(dot(frame.reciprocal[k], frame.reciprocal[k]));
    return frame;
}

// Moves `x` by the lattice vectors that bring it nearest to `to`, counted along each periodic direction.
__device__ void move_near(const Frame& frame, const double* to, double* x) {
    const double between[3] = {x[0] - to[0], x[1] - to[1], x[2] - to[2]};
    for (int k = 0; k < 3; ++k) {
        if (frame.periodic[k] == 0) continue;
        const double images = std::rint(dot(between, frame.reciprocal[k]));
        for (int i = 0; i < 3; ++i) x[i] -= images * frame.vectors[k][i];
    }
}

// Launch: one warp per tile. Clears all sums, and sorts the atoms of a tile by kind. Atoms of a tile may come from
// different images of the cell: they are moved near the first one.
template <class Real>
__global__ void __launch_bounds__(kBlockThreads) place_kernel(Work<Real> work) {
    mlff::gpu::await_predecessor();
    const int tile = static_cast<int>((blockIdx.x * kBlockThreads + threadIdx.x) / 32);
    const int lane = static_cast<int>(threadIdx.x % 32);
    if (tile >= work.tile_count) return;
    const Frame frame = frame_of(work.cell);
    if (tile == 0 && lane == 0) *work.frame = frame;

    const bool is_own = tile < work.own_tile_count;
    const int first = kTileAtoms * (is_own ? tile : tile - work.own_tile_count);
    const int left = (is_own ? work.owned_count : work.ghost_count) - first;
    const int count = left < kTileAtoms ? left : kTileAtoms;
    const bool is_atom = lane < count;
    const auto atom_at = [&](int index) {
        return !is_own ? work.owned_count + index : work.order ? work.order[index] : index;
    };
    const int atom = is_atom ? atom_at(first + lane) : -1;
    const int kind = is_atom ? work.tables.kind_of_element[work.elements[atom]] : work.tables.kind_count;

    // The first atom, in the cell itself; then all atoms near it.
    double base[3], x[3];
    const int64_t first_atom = atom_at(first);
    for (int k = 0; k < 3; ++k) base[k] = work.positions[3 * first_atom + k];
    const double origin[3] = {};
    move_near(frame, origin, base);
    for (int k = 0; k < 3; ++k) x[k] = is_atom ? work.positions[3 * int64_t{atom} + k] : base[k];
    move_near(frame, base, x);

    TileBox<Real> box;
    box.count = count;
    for (int k = 0; k < 3; ++k) {
        const double low = least_over_warp(x[k]), high = -least_over_warp(-x[k]);
        box.centre[k] = 0.5 * (low + high);
        box.half[k] = static_cast<Real>(0.5 * (high - low) * 1.000001 + 1e-6);  // no rounding leaves an atom outside
    }
    int rank = 0;
    for (int other = 0; other < 32; ++other) {
        const int its = __shfl_sync(kAllLanes, kind, other);
        rank += its < kind || (its == kind && other < lane) ? 1 : 0;
    }
    if (lane == 0) work.boxes[tile] = box;
    const int64_t slot = int64_t{tile} * kTileAtoms + rank;
    work.atom_of_slot[slot] = atom;
    work.kind_of_slot[slot] = kind;
    Four<Real> row;
    for (int k = 0; k < 3; ++k) row.at[k] = static_cast<Real>(x[k] - box.centre[k]);
    row.at[3] = is_atom ? work.tables.covalent_radius[kind] : Real(0);
    work.places[slot] = row;
    work.rows[slot * row_length(work.reference_count)] = row;  // weigh() adds the weights
    for (int k = 0; k < kSumCount; ++k) work.sums[k * work.slot_count() + slot] = 0;
    if (is_own && lane < 9) work.tile_virials[9 * int64_t{tile} + lane] = 0;
}

// ---- Counts of neighbours ----

template <class Real>
__global__ void __launch_bounds__(kBlockThreads) count_kernel(Work<Real> work) {
    mlff::gpu::await_predecessor();
    constexpr int kNear = kNearAtoms<Real>;
    constexpr auto kCutoff = static_cast<Real>(kCountCutoff);
    const TilePart at(work);
    const NearAtoms<Real> near(work, at);
    Real counts[kNear][1] = {};
    FarSums<kCountSum, 1, Real> far_sums(work, at);
    bool is_too_near = false;
    const bool has_any = for_each_far_tile(work, at, kCountCutoff, [&](const FarTile<Real>& far) {
        const bool is_added = far.tile != at.tile && far.tile < work.own_tile_count;
        for_each_step<Real>(at, atoms_within(work, at, far, kCutoff), [&](int j, bool is_one) {
            const int64_t slot = int64_t{far.tile} * kTileAtoms + j;
            const Four<Real> other = work.places[slot];
            const Real to[3] = {far.offset[0] + other.at[0], far.offset[1] + other.at[1], far.offset[2] + other.at[2]};
            const Real cutoff = is_one ? kCutoff : Real(0);
            Real squares[kNear], far_count[1] = {};
#pragma unroll
            for (int n = 0; n < kNear; ++n) {
                const Real d[3] = {to[0] - near.place[n].at[0], to[1] - near.place[n].at[1],
                                   to[2] - near.place[n].at[2]};
                squares[n] = d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
            }
            const int self = far.tile == at.tile ? j : -1;
            if (self < 0) {
#pragma unroll
                for (int n = 0; n < kNear; ++n) is_too_near |= !(squares[n] > least_square<Real>());
            } else {
#pragma unroll
                for (int n = 0; n < kNear; ++n)
                    is_too_near |= !(squares[n] > least_square<Real>()) && near.slot_in_tile(at, n) != self;
            }
#pragma unroll
            for (int n = 0; n < kNear; ++n) {
                const Real reach = near.place[n].at[3] + other.at[3];
                const Real value = count_neighbor_at(reach, inverse_root(squares[n])).value;
                const Real counted = is_pair(squares[n], cutoff) ? value : Real(0);
                counts[n][0] += counted;
                far_count[0] += counted;
            }
            if (is_added) far_sums.add_step(far_count, slot, is_one);
        });
    });
    if (is_too_near) *work.has_short_edge = 1;
    if (has_any) add_near_sums(work, at, kCountSum, counts);
}

// Four numbers from `first` on, of those of two lists and zeros after them.
template <int kReferences, class Real>
__device__ __forceinline__ Four<Real> fourth_of(const Real (&values)[kReferences], const Real (&slopes)[kReferences],
                                                int first) {
    Four<Real> four = {};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int p = first + i;
        if (p < kReferences) four.at[i] = values[p];
        if (p >= kReferences && p < 2 * kReferences) four.at[i] = slopes[p - kReferences];
    }
    return four;
}

// Weights of references for all atoms; for own atoms, their shares of C6 for each kind. Launch: a block per tile; warps
// take kinds in turn.
template <class Real, int kReferences>
__global__ void __launch_bounds__(kBlockThreads) weigh_kernel(Work<Real> work) {
    mlff::gpu::await_predecessor();
    const int tile = static_cast<int>(blockIdx.x), lane = static_cast<int>(threadIdx.x % 32);
    const int warp = static_cast<int>(threadIdx.x / 32);
    const KindTables<Real>& tables = work.tables;
    const int64_t slot = int64_t{tile} * kTileAtoms + lane;
    const bool is_atom = work.kind_of_slot[slot] < tables.kind_count;  // others have no weights
    const int kind = is_atom ? work.kind_of_slot[slot] : 0;
    const double count = number_of(work.sums[kCountSum * work.slot_count() + slot]);
    Real weights[kReferences] = {}, slopes[kReferences] = {};
    {
        double exact_weights[kMaxReferences], exact_slopes[kMaxReferences], references[kMaxReferences] = {};
        const int own = tables.reference_count[kind];
        for (int p = 0; p < own; ++p)
            references[p] = static_cast<double>(tables.reference_counts[kind * kMaxReferences + p]);
        weigh_references(references, own, count, exact_weights, exact_slopes);
#pragma unroll
        for (int p = 0; p < kReferences; ++p) {
            weights[p] = is_atom && p < own ? static_cast<Real>(exact_weights[p]) : Real(0);
            slopes[p] = is_atom && p < own ? static_cast<Real>(exact_slopes[p]) : Real(0);
        }
    }
    if (warp == 0) {
        constexpr int kLength = row_length(kReferences);
        Four<Real>* const row = work.rows + slot * kLength;
        row[0].at[3] = weights[0];
#pragma unroll
        for (int f = 1; f < kLength; ++f) row[f] = fourth_of(weights, slopes, 4 * f - 3);
    }
    if (tile >= work.own_tile_count) return;
    constexpr int kShareLength = share_length(kReferences);
    for (int other = warp; other < tables.kind_count; other += kWarps) {
        const Real* const c6 = tables.c6 + (kind * tables.kind_count + other) * kMaxReferences * kMaxReferences;
        Real values[kReferences] = {}, value_slopes[kReferences] = {};
#pragma unroll
        for (int q = 0; q < kReferences; ++q)
#pragma unroll
            for (int p = 0; p < kReferences; ++p) {
                values[q] += weights[p] * c6[p * kMaxReferences + q];
                value_slopes[q] += slopes[p] * c6[p * kMaxReferences + q];
            }
        Four<Real>* const share = work.shares + (slot * tables.kind_count + other) * kShareLength;
#pragma unroll
        for (int f = 0; f < kShareLength; ++f) share[f] = fourth_of(values, value_slopes, 4 * f);
    }
}

// ---- Pairs ----

// The damped attraction of the pairs of a step: bj and not smooth if it is usual. Branches that are the same for all
// are outside of the loops.
template <bool kIsUsual, int kCount, class Real>
__device__ __forceinline__ void damp_pairs(const Work<Real>& work, const PairForm<Real> (&forms)[kCount],
                                           const Real (&squares)[kCount], PairValue<Real> (&pairs)[kCount]) {
    if (kIsUsual || work.damping == DampingKind::bj) {
#pragma unroll
        for (int n = 0; n < kCount; ++n) pairs[n] = bj_pair(forms[n], squares[n]);
    } else {
#pragma unroll
        for (int n = 0; n < kCount; ++n) pairs[n] = zero_pair(forms[n], work.half_exponent, squares[n]);
    }
    if constexpr (!kIsUsual) {
        if (!work.is_smooth) return;
        constexpr auto kEnd = static_cast<Real>(kPairCutoff), kBegin = static_cast<Real>(kPairCutoff - kFadeWidth);
#pragma unroll
        for (int n = 0; n < kCount; ++n) {
            const Real r = std::sqrt(squares[n]);
            pairs[n] = faded(pairs[n], fade_out(r, kBegin, kEnd), r);
        }
    }
}

// Adds `pull` times d to a force, and if wanted their product to a virial, from sums[first] on.
template <bool kVirial, int kCount, class Real>
__device__ __forceinline__ void add_pull(Real pull, const Real (&d)[3], int first, Real (&sums)[kCount]) {
    const Real force[3] = {pull * d[0], pull * d[1], pull * d[2]};
    for (int x = 0; x < 3; ++x) sums[first + x] += kVirial ? force[x] : pull * d[x];
    if constexpr (kVirial) {
        sums[first + 3] += force[0] * d[0];
        sums[first + 4] += force[0] * d[1];
        sums[first + 5] += force[0] * d[2];
        sums[first + 6] += force[1] * d[1];
        sums[first + 7] += force[1] * d[2];
        sums[first + 8] += force[2] * d[2];
    }
}

template <class Real>
__device__ __forceinline__ void unpack(const Four<Real>* from, Real* to) {
    const Four<Real> four = *from;  // one load
#pragma unroll
    for (int i = 0; i < 4; ++i) to[i] = four.at[i];
}

// Blocks of a multiprocessor: as many as there are registers for.
template <class Real, int kReferences, bool kVirial>
inline constexpr int kPairBlocks = sizeof(Real) > sizeof(float) || kVirial ? 2
                                   : kReferences == kFewReferences         ? 4
                                   : kReferences == kUsualReferences       ? 3
                                                                           : 2;

template <class Real, int kReferences, bool kVirial, bool kIsUsual>
__global__ void __launch_bounds__(kBlockThreads, kPairBlocks<Real, kReferences, kVirial>) pair_kernel(Work<Real> work) {
    mlff::gpu::await_predecessor();
    constexpr int kNear = kNearAtoms<Real>;
    constexpr int kLength = row_length(kReferences), kShareLength = share_length(kReferences);
    constexpr int kCount = (kVirial ? kSumCount : kVirialSum) - kEnergySum, kForce = kForceSum - kEnergySum;
    constexpr auto kCutoff = static_cast<Real>(kPairCutoff);
    const TilePart at(work);
    const NearAtoms<Real> near(work, at);
    const int kinds = work.tables.kind_count;
    Real sums[kNear][kCount] = {};
    FarSums<kEnergySum, kCount, Real> far_sums(work, at);
    const bool has_any = for_each_far_tile(work, at, kPairCutoff, [&](const FarTile<Real>& far) {
        const bool is_own = far.tile < work.own_tile_count, is_added = is_own && far.tile != at.tile;
        const int64_t first = int64_t{far.tile} * kTileAtoms;
        const int kind_of_lane = work.kind_of_slot[first + at.lane];
        for (unsigned left = atoms_within(work, at, far, kCutoff); left != 0;) {  // atoms of one kind
            const int kind = __shfl_sync(kAllLanes, kind_of_lane, __ffs(static_cast<int>(left)) - 1);
            const unsigned run = left & __ballot_sync(kAllLanes, kind_of_lane == kind ? 1 : 0);
            left &= ~run;
            PairForm<Real> forms[kNear];
            Real share[kNear][4 * kShareLength];
#pragma unroll
            for (int n = 0; n < kNear; ++n) {
                const int64_t slot = near.slot_of(at, n);
                const int near_kind = work.kind_of_slot[slot];
                forms[n] = work.tables.forms[(near_kind < kinds ? near_kind : 0) * kinds + kind];
                forms[n].six = work.six;
#pragma unroll
                for (int f = 0; f < kShareLength; ++f)
                    unpack(work.shares + (slot * kinds + kind) * kShareLength + f, share[n] + 4 * f);
            }
            for_each_step<Real>(at, run, [&](int j, bool is_one) {
                Real row[4 * kLength];
#pragma unroll
                for (int f = 0; f < kLength; ++f) unpack(work.rows + (first + j) * kLength + f, row + 4 * f);
                const Real to[3] = {far.offset[0] + row[0], far.offset[1] + row[1], far.offset[2] + row[2]};
                const Real cutoff = is_one ? kCutoff : Real(0);
                Real d[kNear][3], squares[kNear], far_values[kCount] = {};
                PairValue<Real> pairs[kNear];
#pragma unroll
                for (int n = 0; n < kNear; ++n) {
                    for (int x = 0; x < 3; ++x) d[n][x] = to[x] - near.place[n].at[x];
                    const Real square = d[n][0] * d[n][0] + d[n][1] * d[n][1] + d[n][2] * d[n][2];
                    // What is so far away has no energy and no force.
                    squares[n] = is_pair(square, cutoff) ? square : Real(kNowhere) * Real(kNowhere);
                }
                damp_pairs<kIsUsual>(work, forms, squares, pairs);
#pragma unroll
                for (int n = 0; n < kNear; ++n) {
                    Real c6 = 0, near_slope = 0, far_slope = 0;  // of c6, by the counts of the two atoms
#pragma unroll
                    for (int q = 0; q < kReferences; ++q) {
                        c6 += share[n][q] * row[3 + q];
                        near_slope += share[n][kReferences + q] * row[3 + q];
                        far_slope += share[n][q] * row[3 + kReferences + q];
                    }
                    const Real pull = c6 * pairs[n].pull;
                    sums[n][0] += c6 * pairs[n].energy;
                    sums[n][1] += near_slope * pairs[n].energy;
                    add_pull<kVirial>(pull, d[n], kForce, sums[n]);
                    far_values[0] += c6 * pairs[n].energy;
                    far_values[1] += far_slope * pairs[n].energy;
                    add_pull<kVirial>(pull, d[n], kForce, far_values);
                }
                if (is_own) far_sums.add_step(far_values, first + j, is_added && is_one);
            });
        }
        far_sums.end_tile(far, !is_added);
    });
    if (!has_any) return;
    add_near_sums(work, at, kEnergySum, sums);
    far_sums.add_tile_virial();
}

template <class Real, bool kVirial>
__global__ void __launch_bounds__(kBlockThreads) gradient_kernel(Work<Real> work) {
    mlff::gpu::await_predecessor();
    constexpr int kNear = kNearAtoms<Real>, kCount = (kVirial ? kSumCount : kVirialSum) - kForceSum;
    constexpr auto kCutoff = static_cast<Real>(kCountCutoff);
    const TilePart at(work);
    const NearAtoms<Real> near(work, at);
    const Fixed* const all_slopes = work.sums + kSlopeSum * work.slot_count();
    Real slopes[kNear], sums[kNear][kCount] = {};
    for (int n = 0; n < kNear; ++n) slopes[n] = number_of<Real>(all_slopes[near.slot_of(at, n)]);
    FarSums<kForceSum, kCount, Real> far_sums(work, at);
    const bool has_any = for_each_far_tile(work, at, kCountCutoff, [&](const FarTile<Real>& far) {
        const bool is_own = far.tile < work.own_tile_count, is_added = is_own && far.tile != at.tile;
        for_each_step<Real>(at, atoms_within(work, at, far, kCutoff), [&](int j, bool is_one) {
            const int64_t slot = int64_t{far.tile} * kTileAtoms + j;
            const Four<Real> other = work.places[slot];
            const Real far_slope = number_of<Real>(all_slopes[slot]);
            const Real to[3] = {far.offset[0] + other.at[0], far.offset[1] + other.at[1], far.offset[2] + other.at[2]};
            const Real cutoff = is_one ? kCutoff : Real(0);
            Real far_values[kCount] = {};
#pragma unroll
            for (int n = 0; n < kNear; ++n) {
                const Real d[3] = {to[0] - near.place[n].at[0], to[1] - near.place[n].at[1],
                                   to[2] - near.place[n].at[2]};
                const Real square = d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
                const Real inverse_r = inverse_root(square);
                const Real slope = count_neighbor_at(near.place[n].at[3] + other.at[3], inverse_r).slope;
                const Real pull = is_pair(square, cutoff) ? (slopes[n] + far_slope) * slope * inverse_r : Real(0);
                add_pull<kVirial>(pull, d, 0, sums[n]);
                add_pull<kVirial>(pull, d, 0, far_values);
            }
            if (is_own) far_sums.add_step(far_values, slot, is_added && is_one);
        });
        far_sums.end_tile(far, !is_added);
    });
    if (!has_any) return;
    add_near_sums(work, at, kForceSum, sums);
    far_sums.add_tile_virial();
}

// ---- Results ----

constexpr int kResultThreads = 4;  // of an atom

// Virials of atoms are those of their pairs, or right in sum only: the forces between tiles times their offsets, less
// the forces on atoms times their places in the boxes.
template <class Real>
__device__ double virial_of(const Work<Real>& work, int64_t slot, const double* force, int row, int column) {
    if (work.has_atom_virials) {
        const int low = row < column ? row : column, high = row < column ? column : row;
        const int which = low == 0 ? high : low + high + 1;  // xx, xy, xz, yy, yz, zz
        return -0.5 * number_of(work.sums[(kVirialSum + which) * work.slot_count() + slot]);
    }
    const Real* const place = work.places[slot].at;
    double virial =
        0.5 * (force[row] * static_cast<double>(place[column]) + force[column] * static_cast<double>(place[row]));
    if (slot % kTileAtoms == 0) {
        const Fixed* const of_tile = work.tile_virials + 9 * (slot / kTileAtoms);
        virial -= 0.5 * (number_of(of_tile[3 * row + column]) + number_of(of_tile[3 * column + row]));
    }
    return virial;
}

// Launch: kResultThreads threads for every slot, those of ghosts too, whose results are zero.
template <class Real>
__global__ void __launch_bounds__(kBlockThreads) write_results_kernel(Work<Real> work) {
    mlff::gpu::await_predecessor();
    const int64_t item = blockIdx.x * int64_t{kBlockThreads} + threadIdx.x, slot = item / kResultThreads;
    const int part = static_cast<int>(item % kResultThreads);
    if (slot >= work.slot_count()) return;
    const int64_t atom = work.atom_of_slot[slot];
    if (atom < 0) return;
    const bool is_own = slot < int64_t{work.own_tile_count} * kTileAtoms;
    double force[3];
    for (int x = 0; x < 3; ++x)
        force[x] = is_own ? number_of(work.sums[(kForceSum + x) * work.slot_count() + slot]) : 0;
    if (part == 0) {
        if (is_own) work.energies[atom] = 0.5 * number_of(work.sums[kEnergySum * work.slot_count() + slot]);
        for (int x = 0; work.forces && x < 3; ++x) work.forces[3 * atom + x] = force[x];
    } else if (work.virials) {
        const int row = part - 1;
        for (int column = 0; column < 3; ++column)
            work.virials[9 * atom + 3 * row + column] = is_own ? virial_of(work, slot, force, row, column) : 0;
    }
}

// ---- Exchange with other domains ----

// Launch: a thread per own slot.
template <class Real>
__global__ void __launch_bounds__(kBlockThreads) write_sums_kernel(Work<Real> work, Sum which, double* of_atoms) {
    mlff::gpu::await_predecessor();
    const int64_t slot = blockIdx.x * int64_t{kBlockThreads} + threadIdx.x;
    if (slot >= int64_t{work.own_tile_count} * kTileAtoms) return;
    const int atom = work.atom_of_slot[slot];
    if (atom >= 0) of_atoms[atom] = number_of(work.sums[which * work.slot_count() + slot]);
}

// Launch: a thread per slot of the ghosts.
template <class Real>
__global__ void __launch_bounds__(kBlockThreads) read_sums_kernel(Work<Real> work, Sum which, const double* of_atoms) {
    mlff::gpu::await_predecessor();
    const int64_t slot = int64_t{work.own_tile_count} * kTileAtoms + blockIdx.x * int64_t{kBlockThreads} + threadIdx.x;
    if (slot >= work.slot_count()) return;
    const int atom = work.atom_of_slot[slot];
    if (atom >= 0) work.sums[which * work.slot_count() + slot] = fixed_of(of_atoms[atom]);
}

// Launches that depend on numbers that are constants of the kernels.
template <class Real, bool kVirial, bool kIsUsual>
void launch_pairs(const Work<Real>& work, int64_t blocks, cudaStream_t stream) {
    mlff::gpu::launch("pairs of D3",
                      work.reference_count == kFewReferences ? pair_kernel<Real, kFewReferences, kVirial, kIsUsual>
                      : work.reference_count == kUsualReferences
                          ? pair_kernel<Real, kUsualReferences, kVirial, kIsUsual>
                          : pair_kernel<Real, kMaxReferences, kVirial, kIsUsual>,
                      blocks, kBlockThreads, stream, work);
}
template <class Real>
int64_t part_blocks(const Work<Real>& work) {
    return int64_t{work.own_tile_count} * work.part_count;
}
int64_t blocks_of(int64_t threads) { return (threads + kBlockThreads - 1) / kBlockThreads; }

}  // namespace

template <class Real>
void place(const Work<Real>& work, cudaStream_t stream) {
    if (work.tile_count > 0)
        mlff::gpu::launch("placing atoms for D3", place_kernel<Real>, blocks_of(work.slot_count()), kBlockThreads,
                          stream, work);
}

template <class Real>
void count_neighbors(const Work<Real>& work, cudaStream_t stream) {
    if (work.own_tile_count > 0)
        mlff::gpu::launch("counting neighbours for D3", count_kernel<Real>, part_blocks(work), kBlockThreads, stream,
                          work);
}

template <class Real>
void weigh(const Work<Real>& work, cudaStream_t stream) {
    if (work.tile_count > 0)
        mlff::gpu::launch("references of D3",
                          work.reference_count == kFewReferences     ? weigh_kernel<Real, kFewReferences>
                          : work.reference_count == kUsualReferences ? weigh_kernel<Real, kUsualReferences>
                                                                     : weigh_kernel<Real, kMaxReferences>,
                          work.tile_count, kBlockThreads, stream, work);
}

template <class Real>
void sum_pairs(const Work<Real>& work, cudaStream_t stream) {
    if (work.own_tile_count == 0) return;
    const bool is_usual = work.damping == DampingKind::bj && !work.is_smooth;
    if (work.has_atom_virials)
        launch_pairs<Real, true, false>(work, part_blocks(work), stream);
    else if (is_usual)
        launch_pairs<Real, false, true>(work, part_blocks(work), stream);
    else
        launch_pairs<Real, false, false>(work, part_blocks(work), stream);
}

template <class Real>
void sum_gradients(const Work<Real>& work, cudaStream_t stream) {
    if (work.own_tile_count > 0)
        mlff::gpu::launch("gradients of D3's counts",
                          work.has_atom_virials ? gradient_kernel<Real, true> : gradient_kernel<Real, false>,
                          part_blocks(work), kBlockThreads, stream, work);
}

template <class Real>
void write_results(const Work<Real>& work, cudaStream_t stream) {
    if (work.tile_count > 0)
        mlff::gpu::launch("results of D3", write_results_kernel<Real>, blocks_of(kResultThreads * work.slot_count()),
                          kBlockThreads, stream, work);
}

template <class Real>
void write_sums(const Work<Real>& work, Sum which, double* of_atoms, cudaStream_t stream) {
    const int64_t slots = int64_t{work.own_tile_count} * kTileAtoms;
    if (slots > 0)
        mlff::gpu::launch("sums of D3 for other domains", write_sums_kernel<Real>, blocks_of(slots), kBlockThreads,
                          stream, work, which, of_atoms);
}

template <class Real>
void read_sums(const Work<Real>& work, Sum which, const double* of_atoms, cudaStream_t stream) {
    const int64_t slots = work.slot_count() - int64_t{work.own_tile_count} * kTileAtoms;
    if (slots > 0)
        mlff::gpu::launch("sums of D3 of other domains", read_sums_kernel<Real>, blocks_of(slots), kBlockThreads,
                          stream, work, which, of_atoms);
}

#define MLFF_INSTANTIATE(Real)                                               \
    template void place(const Work<Real>&, cudaStream_t);                    \
    template void count_neighbors(const Work<Real>&, cudaStream_t);          \
    template void weigh(const Work<Real>&, cudaStream_t);                    \
    template void sum_pairs(const Work<Real>&, cudaStream_t);                \
    template void sum_gradients(const Work<Real>&, cudaStream_t);            \
    template void write_results(const Work<Real>&, cudaStream_t);            \
    template void write_sums(const Work<Real>&, Sum, double*, cudaStream_t); \
    template void read_sums(const Work<Real>&, Sum, const double*, cudaStream_t);
MLFF_INSTANTIATE(float)
MLFF_INSTANTIATE(double)
#undef MLFF_INSTANTIATE

}  // namespace mlff::dispersion::gpu
