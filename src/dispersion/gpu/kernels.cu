// SPDX-License-Identifier: MIT
#include "dispersion/gpu/kernels.h"

#include "dispersion/functions/coordination.h"
#include "dispersion/tables/units.h"
#include "gpu/engine/warp.h"
#include "gpu/runtime/cuda_check.h"

namespace mlff::dispersion::gpu {
namespace {

using mlff::gpu::kAllLanes;
using mlff::gpu::kBlockThreads;
using mlff::gpu::kWarps;
using mlff::gpu::sum_over_warp;
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

// Launch: one warp per tile. Sorts the atoms of a tile by kind. Atoms of a tile may come from different images of the
// cell: they are moved near the first one.
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
    if (is_atom) work.rows[slot * row_length(work.reference_count)] = row;  // weigh() adds the weights
}

// ---- Which tiles and images a tile looks at ----

// One image of a tile, as the atoms of another tile see it.
template <class Real>
struct FarTile {
    int tile = 0;
    Real offset[3]{};  // from the centre of the near box to that of the far one, angstrom
};

// Calls visit(far) for the tiles and images whose boxes come within the cutoff, in an order that depends on the boxes
// alone: the candidates are dealt to the blocks of a tile in groups of 32, and what is left of them to the warps of the
// block in turn. All lanes of a warp call this and visit() together.
template <class Real, class Visit>
__device__ __forceinline__ void for_each_far_tile(const Work<Real>& work, int near, int part, double cutoff,
                                                  const Visit& visit) {
    const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
    const Frame& frame = *work.frame;
    const TileBox<Real> box = work.boxes[near];
    const auto most_square = static_cast<Real>(cutoff * cutoff * 1.00001);
    int group_count = 0, hit_count = 0;
    for (int begin = 0; begin < work.tile_count; begin += 32) {
        // The images of one far tile for each lane, as a range of lattice vectors.
        const int tile = begin + lane;
        int lowest[3] = {}, size[3] = {1, 1, 1};
        if (tile < work.tile_count) {
            const TileBox<Real> far = work.boxes[tile];
            double between[3];
            for (int x = 0; x < 3; ++x) between[x] = far.centre[x] - box.centre[x];
            for (int k = 0; k < 3; ++k) {
                if (frame.periodic[k] == 0) continue;
                const double* const along = frame.reciprocal[k];
                double reach = cutoff * std::sqrt(dot(along, along));
                for (int x = 0; x < 3; ++x)
                    reach += std::abs(along[x]) * static_cast<double>(box.half[x] + far.half[x]);
                const double middle = -dot(between, along);
                lowest[k] = static_cast<int>(std::ceil(middle - reach));
                size[k] = static_cast<int>(std::floor(middle + reach)) - lowest[k] + 1;
                if (size[k] < 0) size[k] = 0;
            }
        } else {
            size[0] = 0;
        }
        int end = size[0] * size[1] * size[2];  // of this lane's candidates, among those of all lanes
        const int own_count = end;
        for (int distance = 1; distance < 32; distance *= 2) {
            const int before = __shfl_sync(kAllLanes, end, lane - distance);
            if (lane >= distance) end += before;
        }
        const int total = __shfl_sync(kAllLanes, end, 31);
        for (int first = 0; first < total; first += 32) {
            if (group_count++ % work.part_count != part) continue;
            // The lane whose candidates include this one.
            const int candidate = first + lane;
            int source = 0;
            for (int step = 16; step >= 1; step /= 2)
                if (__shfl_sync(kAllLanes, end, source + step - 1) <= candidate) source += step;
            const int before = __shfl_sync(kAllLanes, end - own_count, source);
            int index = candidate - before;
            int shift[3];
            for (int k = 0; k < 3; ++k) {
                const int low = __shfl_sync(kAllLanes, lowest[k], source),
                          many = __shfl_sync(kAllLanes, size[k], source);
                shift[k] = many > 0 ? low + index % many : 0;
                index = many > 0 ? index / many : 0;
            }
            FarTile<Real> far;
            bool is_hit = false;
            if (candidate < total) {
                far.tile = begin + source;
                const TileBox<Real> other = work.boxes[far.tile];
                Real square = 0;
                for (int x = 0; x < 3; ++x) {
                    double offset = other.centre[x] - box.centre[x];
                    for (int k = 0; k < 3; ++k) offset += frame.periodic[k] * shift[k] * frame.vectors[k][x];
                    far.offset[x] = static_cast<Real>(offset);
                    const Real gap = std::abs(far.offset[x]) - (box.half[x] + other.half[x]);
                    if (gap > 0) square += gap * gap;
                }
                is_hit = square < most_square;
            }
            for (unsigned hits = __ballot_sync(kAllLanes, is_hit ? 1 : 0); hits != 0; hits &= hits - 1) {
                if (hit_count++ % kWarps != warp) continue;
                const int hit = __ffs(static_cast<int>(hits)) - 1;
                FarTile<Real> seen;
                seen.tile = __shfl_sync(kAllLanes, far.tile, hit);
                for (int x = 0; x < 3; ++x) seen.offset[x] = __shfl_sync(kAllLanes, far.offset[x], hit);
                visit(seen);
            }
        }
    }
}

// The tile and the part of a block. Launch: own_tile_count * part_count blocks.
template <class Real>
struct TilePart {
    int tile, part, lane, warp;
    int64_t slot;
    __device__ explicit TilePart(const Work<Real>& work)
        : tile(static_cast<int>(blockIdx.x) / work.part_count),
          part(static_cast<int>(blockIdx.x) % work.part_count),
          lane(static_cast<int>(threadIdx.x % 32)),
          warp(static_cast<int>(threadIdx.x / 32)),
          slot(int64_t{tile} * kTileAtoms + lane) {}
};

// Adds up the sums of the block's warps, and writes them to parts[slot][sum][part].
template <int kSums, class Real>
__device__ void write_parts(const TilePart<Real>& at, int part_count, const Real (&sums)[kSums], Real* parts) {
    __shared__ Real of_warp[kWarps][kSums][32];
    for (int s = 0; s < kSums; ++s) of_warp[at.warp][s][at.lane] = sums[s];
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < 32 * kSums; i += kBlockThreads) {
        const int lane = i % 32, s = i / 32;
        Real sum = 0;
        for (int w = 0; w < kWarps; ++w) sum += of_warp[w][s][lane];
        parts[((int64_t{at.tile} * kTileAtoms + lane) * kSums + s) * part_count + at.part] = sum;
    }
}

// The position of the lane's atom from the centre of its box. Lanes without an atom are beyond every cutoff.
template <class Real>
struct NearAtom {
    Four<Real> place;
    int kind;
    Real half[3];  // of the box
    __device__ NearAtom(const Work<Real>& work, const TilePart<Real>& at)
        : place(work.places[at.slot]), kind(work.kind_of_slot[at.slot]) {
        for (int x = 0; x < 3; ++x) half[x] = work.boxes[at.tile].half[x];
        if (kind < work.tables.kind_count) return;
        place.at[0] = Real(1e6);
        kind = 0;
    }
};

// Which atoms of a far tile come within the cutoff of the near box, a bit for each. `places`: those of the far tile.
template <class Real>
__device__ __forceinline__ unsigned atoms_within(const NearAtom<Real>& near, const FarTile<Real>& far,
                                                 const Four<Real>* places, int count, Real cutoff) {
    const int lane = static_cast<int>(threadIdx.x % 32);
    const Four<Real> place = places[lane];
    Real square = 0;
    for (int x = 0; x < 3; ++x) {
        const Real gap = std::abs(far.offset[x] + place.at[x]) - near.half[x];
        if (gap > 0) square += gap * gap;
    }
    return __ballot_sync(kAllLanes, lane < count && square < cutoff * cutoff * Real(1.00001) ? 1 : 0);
}

// visit(atom) for the atoms from `begin` up to `end` that are in `within`. Loads of the next atom are under way sooner
// in the loop over all of them.
template <class Visit>
__device__ __forceinline__ void for_each_atom(unsigned within, int begin, int end, const Visit& visit) {
    const unsigned below_end = end < 32 ? (1u << end) - 1 : 0xffffffffu;
    unsigned left = within & below_end & ~((1u << begin) - 1);
    if (__popc(left) == end - begin) {
#pragma unroll 2
        for (int atom = begin; atom < end; ++atom) visit(atom);
    } else {
        for (; left != 0; left &= left - 1) visit(__ffs(static_cast<int>(left)) - 1);
    }
}

template <class Real>
__device__ __forceinline__ bool is_pair(Real square, Real cutoff) {
    constexpr Real kLeast =  // of float, what rounding leaves of places in different tiles
        sizeof(Real) == sizeof(float) ? Real(1e-8) : static_cast<Real>(kLeastSquare);
    return square < cutoff * cutoff && square > kLeast;
}

template <class Real>
__global__ void __launch_bounds__(kBlockThreads) count_kernel(Work<Real> work) {
    mlff::gpu::await_predecessor();
    const TilePart<Real> at(work);
    const NearAtom<Real> near(work, at);
    constexpr auto kCutoff = static_cast<Real>(kCountCutoff);
    Real sums[1] = {};
    for_each_far_tile(work, at.tile, at.part, kCountCutoff, [&](const FarTile<Real>& far) {
        const Four<Real>* const places = work.places + int64_t{far.tile} * kTileAtoms;
        const int count = work.boxes[far.tile].count;
        Real base[3];
        for (int x = 0; x < 3; ++x) base[x] = far.offset[x] - near.place.at[x];
        for_each_atom(atoms_within(near, far, places, count, kCutoff), 0, count, [&](int j) {
            const Four<Real> other = places[j];
            Real square = 0;
            for (int x = 0; x < 3; ++x) square += (base[x] + other.at[x]) * (base[x] + other.at[x]);
            if (is_pair(square, kCutoff))
                sums[0] += count_neighbor_at(near.place.at[3] + other.at[3], inverse_root(square)).value;
            else if (!(square >= kCutoff * kCutoff) && !(far.tile == at.tile && j == at.lane))
                *work.has_short_edge = 1;
        });
    });
    write_parts(at, work.part_count, sums, work.count_parts);
}

// ---- Sums over parts ----

// parts[0 ... count - 1], by all lanes of a warp.
template <class Real>
__device__ double sum_of_parts(const Real* parts, int count) {
    double sum = 0;
    for (int part = static_cast<int>(threadIdx.x % 32); part < count; part += 32)
        sum += static_cast<double>(parts[part]);
    return sum_over_warp(sum);
}
inline constexpr int kFewParts = 4;  // which one thread sums
template <class Real>
__device__ double sum_of_few_parts(const Real* parts, int count) {
    double sum = 0;
    for (int part = 0; part < count; ++part) sum += static_cast<double>(parts[part]);
    return sum;
}

// For every slot of a tile parts[slot][which of `sums`][part], summed over the parts into totals[slot of the tile], by
// a block.
template <class Real>
__device__ void sum_parts_of_tile(const Work<Real>& work, int tile, const Real* parts, int sums, int which,
                                  double (&totals)[kTileAtoms]) {
    const auto parts_of = [&](int lane) {
        return parts + ((int64_t{tile} * kTileAtoms + lane) * sums + which) * work.part_count;
    };
    const int thread = static_cast<int>(threadIdx.x);
    if (work.part_count <= kFewParts) {
        if (thread < kTileAtoms) totals[thread] = sum_of_few_parts(parts_of(thread), work.part_count);
    } else {
        for (int lane = thread / 32; lane < kTileAtoms; lane += kWarps) {
            const double sum = sum_of_parts(parts_of(lane), work.part_count);
            if (thread % 32 == 0) totals[lane] = sum;
        }
    }
    __syncthreads();
}

// Launch: a block per own tile.
template <class Real>
__global__ void __launch_bounds__(kBlockThreads) write_counts_kernel(Work<Real> work) {
    mlff::gpu::await_predecessor();
    __shared__ double counts[kTileAtoms];
    const int tile = static_cast<int>(blockIdx.x), thread = static_cast<int>(threadIdx.x);
    sum_parts_of_tile(work, tile, work.count_parts, 1, 0, counts);
    if (thread >= kTileAtoms) return;
    const int atom = work.atom_of_slot[int64_t{tile} * kTileAtoms + thread];
    if (atom >= 0) work.atom_counts[atom] = counts[thread];
}

// Weights of references for all atoms; for own atoms, their shares of C6 for each kind. Launch: a block per tile; warps
// take kinds in turn.
template <class Real, int kReferences>
__global__ void __launch_bounds__(kBlockThreads) weigh_kernel(Work<Real> work, bool from_atom_counts) {
    mlff::gpu::await_predecessor();
    __shared__ double counts[kTileAtoms];
    const int tile = static_cast<int>(blockIdx.x), lane = static_cast<int>(threadIdx.x % 32);
    const int warp = static_cast<int>(threadIdx.x / 32);
    if (!from_atom_counts) sum_parts_of_tile(work, tile, work.count_parts, 1, 0, counts);
    const int64_t slot = int64_t{tile} * kTileAtoms + lane;
    const int atom = work.atom_of_slot[slot], kind = work.kind_of_slot[slot];
    if (atom < 0) return;
    const KindTables<Real>& tables = work.tables;
    const double count = from_atom_counts ? work.atom_counts[atom] : counts[lane];
    Real weights[kReferences] = {}, slopes[kReferences] = {};
    {
        double exact_weights[kMaxReferences], exact_slopes[kMaxReferences], references[kMaxReferences];
        const int own = tables.reference_count[kind];
        for (int p = 0; p < own; ++p)
            references[p] = static_cast<double>(tables.reference_counts[kind * kMaxReferences + p]);
        weigh_references(references, own, count, exact_weights, exact_slopes);
#pragma unroll
        for (int p = 0; p < kReferences; ++p) {
            weights[p] = p < own ? static_cast<Real>(exact_weights[p]) : Real(0);
            slopes[p] = p < own ? static_cast<Real>(exact_slopes[p]) : Real(0);
        }
    }
    if (warp == 0) {
        constexpr int kLength = row_length(kReferences);
        Four<Real>* const row = work.rows + slot * kLength;
        row[0].at[3] = weights[0];
#pragma unroll
        for (int f = 1; f < kLength; ++f) {
            Four<Real> four;
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int p = 4 * f + i - 3;
                four.at[i] = p < kReferences ? weights[p < kReferences ? p : 0] : Real(0);
            }
            row[f] = four;
        }
    }
    if (tile >= work.own_tile_count) return;
    for (int other = warp; other < tables.kind_count; other += kWarps) {
        const Real* const c6 = tables.c6 + (kind * tables.kind_count + other) * kMaxReferences * kMaxReferences;
        Real* const share = work.shares + (int64_t{tile} * tables.kind_count + other) * 2 * kReferences * 32 + lane;
#pragma unroll
        for (int q = 0; q < kReferences; ++q) {
            Real value = 0, slope = 0;
#pragma unroll
            for (int p = 0; p < kReferences; ++p) {
                value += weights[p] * c6[p * kMaxReferences + q];
                slope += slopes[p] * c6[p * kMaxReferences + q];
            }
            share[q * 32] = value;
            share[(kReferences + q) * 32] = slope;
        }
    }
}

// ---- Pairs ----

template <class Real>
__device__ __forceinline__ PairValue<Real> damped_pair(const Work<Real>& work, const PairForm<Real>& form,
                                                       Real square) {
    PairValue<Real> pair =
        work.damping == DampingKind::bj ? bj_pair(form, square) : zero_pair(form, work.half_exponent, square);
    if (work.is_smooth) {
        const Real r = std::sqrt(square);
        pair = faded(pair, fade_out(r, static_cast<Real>(kPairCutoff - kFadeWidth), static_cast<Real>(kPairCutoff)), r);
    }
    return pair;
}

template <class Real>
__device__ __forceinline__ void add_virial(Real pull, const Real (&d)[3], Real* virial) {
    const Real x = pull * d[0], y = pull * d[1], z = pull * d[2];
    virial[0] += x * d[0];
    virial[1] += x * d[1];
    virial[2] += x * d[2];
    virial[3] += y * d[1];
    virial[4] += y * d[2];
    virial[5] += z * d[2];
}

template <class Real, int kReferences, bool kVirial>
__global__ void __launch_bounds__(kBlockThreads) pair_kernel(Work<Real> work) {
    mlff::gpu::await_predecessor();
    constexpr int kLength = row_length(kReferences);
    constexpr auto kCutoff = static_cast<Real>(kPairCutoff);
    const TilePart<Real> at(work);
    const NearAtom<Real> near(work, at);
    const int kinds = work.tables.kind_count;
    const Real* const shares = work.shares + int64_t{at.tile} * kinds * 2 * kReferences * 32 + at.lane;
    Real sums[kVirial ? kPairSums : kPairSumsWithoutVirial] = {};
    for_each_far_tile(work, at.tile, at.part, kPairCutoff, [&](const FarTile<Real>& far) {
        const int64_t first = int64_t{far.tile} * kTileAtoms;
        const Four<Real>* const rows = work.rows + first * kLength;
        const int count = work.boxes[far.tile].count;
        const int kind_of_lane = work.kind_of_slot[first + at.lane];
        const unsigned within = atoms_within(near, far, work.places + first, count, kCutoff);
        Real base[3];
        for (int x = 0; x < 3; ++x) base[x] = far.offset[x] - near.place.at[x];
        for (int begin = 0; begin < count;) {  // atoms of one kind
            const int kind = __shfl_sync(kAllLanes, kind_of_lane, begin);
            const int end = begin + __popc(__ballot_sync(kAllLanes, kind_of_lane == kind ? 1 : 0));
            const PairForm<Real> form = work.tables.forms[near.kind * kinds + kind];
            Real share[2 * kReferences];
#pragma unroll
            for (int i = 0; i < 2 * kReferences; ++i) share[i] = shares[(kind * 2 * kReferences + i) * 32];
            for_each_atom(within, begin, end, [&](int j) {
                Real row[4 * kLength];
#pragma unroll
                for (int f = 0; f < kLength; ++f) {
                    const Four<Real> four = rows[j * kLength + f];
#pragma unroll
                    for (int i = 0; i < 4; ++i) row[4 * f + i] = four.at[i];
                }
                const Real d[3] = {base[0] + row[0], base[1] + row[1], base[2] + row[2]};
                const Real square = d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
                if (!is_pair(square, kCutoff)) return;
                const PairValue<Real> pair = damped_pair(work, form, square);
                Real c6 = 0, c6_slope = 0;
#pragma unroll
                for (int q = 0; q < kReferences; ++q) {
                    c6 += share[q] * row[3 + q];
                    c6_slope += share[kReferences + q] * row[3 + q];
                }
                const Real pull = c6 * pair.pull;
                sums[0] += c6 * pair.energy;
                sums[1] += c6_slope * pair.energy;
                for (int x = 0; x < 3; ++x) sums[2 + x] += pull * d[x];
                if constexpr (kVirial) add_virial(pull, d, sums + 5);
            });
            begin = end;
        }
    });
    write_parts(at, work.part_count, sums, work.pair_parts);
}

// Launch: a block per own tile.
template <class Real>
__global__ void __launch_bounds__(kBlockThreads) write_slopes_kernel(Work<Real> work, int pair_sums) {
    mlff::gpu::await_predecessor();
    __shared__ double slopes[kTileAtoms];
    const int tile = static_cast<int>(blockIdx.x), thread = static_cast<int>(threadIdx.x);
    sum_parts_of_tile(work, tile, work.pair_parts, pair_sums, 1, slopes);
    if (thread >= kTileAtoms) return;
    const int64_t slot = int64_t{tile} * kTileAtoms + thread;
    const int atom = work.atom_of_slot[slot];
    work.slopes[slot] = atom >= 0 ? static_cast<Real>(slopes[thread]) : Real(0);
    if (atom >= 0 && work.atom_slopes) work.atom_slopes[atom] = slopes[thread];
}

// Launch: a thread per slot of the ghosts.
template <class Real>
__global__ void __launch_bounds__(kBlockThreads) read_slopes_kernel(Work<Real> work) {
    mlff::gpu::await_predecessor();
    const int64_t slot = int64_t{work.own_tile_count} * kTileAtoms + blockIdx.x * int64_t{kBlockThreads} + threadIdx.x;
    if (slot >= int64_t{work.tile_count} * kTileAtoms) return;
    const int atom = work.atom_of_slot[slot];
    work.slopes[slot] = atom >= 0 ? static_cast<Real>(work.atom_slopes[atom]) : Real(0);
}

template <class Real, bool kVirial>
__global__ void __launch_bounds__(kBlockThreads) gradient_kernel(Work<Real> work) {
    mlff::gpu::await_predecessor();
    const TilePart<Real> at(work);
    const NearAtom<Real> near(work, at);
    const Real own_slope = work.slopes[at.slot];
    constexpr auto kCutoff = static_cast<Real>(kCountCutoff);
    Real sums[kVirial ? kGradientSums : kGradientSumsWithoutVirial] = {};
    for_each_far_tile(work, at.tile, at.part, kCountCutoff, [&](const FarTile<Real>& far) {
        const int64_t first = int64_t{far.tile} * kTileAtoms;
        const int count = work.boxes[far.tile].count;
        Real base[3];
        for (int x = 0; x < 3; ++x) base[x] = far.offset[x] - near.place.at[x];
        const unsigned within = atoms_within(near, far, work.places + first, count, kCutoff);
        for_each_atom(within, 0, count, [&](int j) {
            const Four<Real> other = work.places[first + j];
            const Real d[3] = {base[0] + other.at[0], base[1] + other.at[1], base[2] + other.at[2]};
            const Real square = d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
            if (!is_pair(square, kCutoff)) return;
            const Real inverse_r = inverse_root(square);
            const Real slope = count_neighbor_at(near.place.at[3] + other.at[3], inverse_r).slope;
            const Real pull = (own_slope + work.slopes[first + j]) * slope * inverse_r;
            for (int x = 0; x < 3; ++x) sums[x] += pull * d[x];
            if constexpr (kVirial) add_virial(pull, d, sums + 3);
        });
    });
    write_parts(at, work.part_count, sums, work.gradient_parts);
}

constexpr int kResultAtoms = 8;  // of a block of write_results_kernel

// Launch: a block for every kResultAtoms slots, those of ghosts too, whose results are zero.
template <class Real>
__global__ void __launch_bounds__(kBlockThreads)
    write_results_kernel(Work<Real> work, int pair_sums, int gradient_sums) {
    mlff::gpu::await_predecessor();
    __shared__ double totals[kResultAtoms][kPairSums + kGradientSums];
    const int64_t first = int64_t{kResultAtoms} * blockIdx.x;
    const int thread = static_cast<int>(threadIdx.x), sums = pair_sums + gradient_sums;
    const bool is_own = first < int64_t{work.own_tile_count} * kTileAtoms;
    const auto parts_of = [&](int item) {
        const int64_t slot = first + item / sums;
        const int s = item % sums;
        return s < pair_sums ? work.pair_parts + (slot * pair_sums + s) * work.part_count
                             : work.gradient_parts + (slot * gradient_sums + s - pair_sums) * work.part_count;
    };
    if (is_own && work.part_count <= kFewParts) {
        for (int item = thread; item < kResultAtoms * sums; item += kBlockThreads)
            totals[item / sums][item % sums] = sum_of_few_parts(parts_of(item), work.part_count);
    } else if (is_own) {
        for (int item = thread / 32; item < kResultAtoms * sums; item += kWarps) {
            const double sum = sum_of_parts(parts_of(item), work.part_count);
            if (thread % 32 == 0) totals[item / sums][item % sums] = sum;
        }
    }
    __syncthreads();
    constexpr int kResults = 13;  // energy, force, virial
    if (thread >= kResultAtoms * kResults) return;
    const int own = thread / kResults, result = thread % kResults;
    const int atom = work.atom_of_slot[first + own];
    if (atom < 0) return;
    const double* const total = totals[own];
    const auto value = [&](int pair_sum, int gradient_sum) {
        return total[pair_sum] + (gradient_sums > 0 ? total[pair_sums + gradient_sum] : 0);
    };
    if (result == 0) {
        if (is_own) work.energies[atom] = 0.5 * total[0];
    } else if (result < 4) {
        if (work.forces) work.forces[3 * int64_t{atom} + result - 1] = is_own ? value(result + 1, result - 1) : 0;
    } else if (work.virials) {
        const int row = (result - 4) / 3, column = (result - 4) % 3;
        const int low = row < column ? row : column, high = row < column ? column : row;
        const int which = low == 0 ? high : low + high + 1;  // xx, xy, xz, yy, yz, zz
        work.virials[9 * int64_t{atom} + result - 4] = is_own ? -0.5 * value(5 + which, 3 + which) : 0;
    }
}

// Launches that depend on numbers that are constants of the kernels.
template <class Real, bool kVirial>
void launch_pairs(const Work<Real>& work, int64_t blocks, cudaStream_t stream) {
    mlff::gpu::launch("pairs of D3",
                      work.reference_count == kFewReferences     ? pair_kernel<Real, kFewReferences, kVirial>
                      : work.reference_count == kUsualReferences ? pair_kernel<Real, kUsualReferences, kVirial>
                                                                 : pair_kernel<Real, kMaxReferences, kVirial>,
                      blocks, kBlockThreads, stream, work);
}
template <class Real>
int64_t part_blocks(const Work<Real>& work) {
    return int64_t{work.own_tile_count} * work.part_count;
}

}  // namespace

template <class Real>
void place(const Work<Real>& work, cudaStream_t stream) {
    if (work.tile_count > 0)
        mlff::gpu::launch("placing atoms for D3", place_kernel<Real>, (work.tile_count + kWarps - 1) / kWarps,
                          kBlockThreads, stream, work);
}

template <class Real>
void count_neighbors(const Work<Real>& work, cudaStream_t stream) {
    if (work.own_tile_count > 0)
        mlff::gpu::launch("counting neighbours for D3", count_kernel<Real>, part_blocks(work), kBlockThreads, stream,
                          work);
}

template <class Real>
void write_counts(const Work<Real>& work, cudaStream_t stream) {
    if (work.own_tile_count > 0)
        mlff::gpu::launch("counting neighbours for D3", write_counts_kernel<Real>, work.own_tile_count, kBlockThreads,
                          stream, work);
}

template <class Real>
void weigh(const Work<Real>& work, bool from_atom_counts, cudaStream_t stream) {
    if (work.tile_count > 0)
        mlff::gpu::launch("references of D3",
                          work.reference_count == kFewReferences     ? weigh_kernel<Real, kFewReferences>
                          : work.reference_count == kUsualReferences ? weigh_kernel<Real, kUsualReferences>
                                                                     : weigh_kernel<Real, kMaxReferences>,
                          work.tile_count, kBlockThreads, stream, work, from_atom_counts);
}

template <class Real>
void sum_pairs(const Work<Real>& work, cudaStream_t stream) {
    if (work.own_tile_count == 0) return;
    if (work.wants_virial)
        launch_pairs<Real, true>(work, part_blocks(work), stream);
    else
        launch_pairs<Real, false>(work, part_blocks(work), stream);
}

template <class Real>
void write_slopes(const Work<Real>& work, cudaStream_t stream) {
    if (work.own_tile_count > 0)
        mlff::gpu::launch("slopes of D3", write_slopes_kernel<Real>, work.own_tile_count, kBlockThreads, stream, work,
                          work.pair_sums());
}

template <class Real>
void read_slopes(const Work<Real>& work, cudaStream_t stream) {
    const int64_t slots = int64_t{kTileAtoms} * (work.tile_count - work.own_tile_count);
    if (slots > 0)
        mlff::gpu::launch("slopes of D3", read_slopes_kernel<Real>, (slots + kBlockThreads - 1) / kBlockThreads,
                          kBlockThreads, stream, work);
}

template <class Real>
void sum_gradients(const Work<Real>& work, cudaStream_t stream) {
    if (work.own_tile_count > 0)
        mlff::gpu::launch("gradients of D3's counts",
                          work.wants_virial ? gradient_kernel<Real, true> : gradient_kernel<Real, false>,
                          part_blocks(work), kBlockThreads, stream, work);
}

template <class Real>
void write_results(const Work<Real>& work, bool has_gradients, cudaStream_t stream) {
    if (work.tile_count > 0)
        mlff::gpu::launch("results of D3", write_results_kernel<Real>,
                          int64_t{work.tile_count} * (kTileAtoms / kResultAtoms), kBlockThreads, stream, work,
                          work.pair_sums(), has_gradients ? work.gradient_sums() : 0);
}

#define MLFF_INSTANTIATE(Real)                                      \
    template void place(const Work<Real>&, cudaStream_t);           \
    template void count_neighbors(const Work<Real>&, cudaStream_t); \
    template void write_counts(const Work<Real>&, cudaStream_t);    \
    template void weigh(const Work<Real>&, bool, cudaStream_t);     \
    template void sum_pairs(const Work<Real>&, cudaStream_t);       \
    template void write_slopes(const Work<Real>&, cudaStream_t);    \
    template void read_slopes(const Work<Real>&, cudaStream_t);     \
    template void sum_gradients(const Work<Real>&, cudaStream_t);   \
    template void write_results(const Work<Real>&, bool, cudaStream_t);
MLFF_INSTANTIATE(float)
MLFF_INSTANTIATE(double)
#undef MLFF_INSTANTIATE

}  // namespace mlff::dispersion::gpu
