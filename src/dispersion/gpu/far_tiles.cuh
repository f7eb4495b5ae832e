// SPDX-License-Identifier: MIT
// Which tiles and images a tile looks at. Two tiles see each other in all images of one another, but only one of the
// two looks: of neighbouring numbers each looks at about half. A tile looks at all images of itself, and at ghosts.
#pragma once

#include "dispersion/gpu/kernels.h"
#include "gpu/engine/warp.h"

namespace mlff::dispersion::gpu {

// The block's tile and its part of what that looks at. Launch: own_tile_count * part_count blocks.
struct TilePart {
    int tile, part, lane, warp;
    template <class Real>
    __device__ explicit TilePart(const Work<Real>& work)
        : tile(static_cast<int>(blockIdx.x) / work.part_count),
          part(static_cast<int>(blockIdx.x) % work.part_count),
          lane(static_cast<int>(threadIdx.x % 32)),
          warp(static_cast<int>(threadIdx.x / 32)) {}
};

// One image of a tile, as the atoms of another tile see it.
template <class Real>
struct FarTile {
    Real offset[3];  // from the centre of the near box to that of the far one, angstrom
    int32_t tile;
};

__device__ inline bool looks_at(int tile, int other, int own_tile_count) {
    if (other == tile || other >= own_tile_count) return true;
    return ((tile + other) % 2 == 0) == (tile < other);
}

// Finds far tiles, a batch of kBlockThreads tiles after the other: one for each thread, with the range of its images
// that can come within the cutoff. All of these are candidates, which are dealt to the parts of the near tile in turn.
template <class Real>
class FarTileSearch {
public:
    static constexpr int kMostFound = 2 * mlff::gpu::kBlockThreads;
    struct Shared {
        int end[mlff::gpu::kBlockThreads];  // of a tile's candidates, among those of the batch
        int lowest[3][mlff::gpu::kBlockThreads], size[3][mlff::gpu::kBlockThreads];
        int of_warp[mlff::gpu::kWarps];
        FarTile<Real> found[kMostFound];
    };

    __device__ FarTileSearch(const Work<Real>& work, const TilePart& at, double cutoff, Shared& shared)
        : work_(work),
          at_(at),
          box_(work.boxes[at.tile]),
          cutoff_(cutoff),
          most_square_(static_cast<Real>(cutoff * cutoff * 1.00001)),
          shared_(shared) {}

    // Finds some more, in the same order in every run. All threads of the block call this, and get their number: 0 if
    // there are no more. They are in `shared` until the next call.
    __device__ int find() {
        int found = 0;
        __syncthreads();  // the last ones have been read
        while (found <= kMostFound - mlff::gpu::kBlockThreads) {
            if (next_ >= candidates_) {
                passed_ = (passed_ + candidates_) % work_.part_count;
                candidates_ = 0;
                if (begin_ >= work_.tile_count) break;
                list_images(begin_ + static_cast<int>(threadIdx.x));
                begin_ += mlff::gpu::kBlockThreads;
                next_ = (at_.part - passed_ + work_.part_count) % work_.part_count;
                continue;
            }
            found += test(next_ + static_cast<int>(threadIdx.x) * work_.part_count, found);
            next_ += mlff::gpu::kBlockThreads * work_.part_count;
        }
        __syncthreads();
        return found;
    }

private:
    // The images of this thread's tile.
    __device__ void list_images(int tile) {
        const int thread = static_cast<int>(threadIdx.x);
        const Frame& frame = *work_.frame;
        int lowest[3] = {}, size[3] = {1, 1, 1};
        if (tile < work_.tile_count && looks_at(at_.tile, tile, work_.own_tile_count)) {
            const TileBox<Real> far = work_.boxes[tile];
            for (int k = 0; k < 3; ++k) {
                if (frame.periodic[k] == 0) continue;
                double reach = cutoff_ * frame.reciprocal_length[k], middle = 0;
                for (int x = 0; x < 3; ++x) {
                    const double along = frame.reciprocal[k][x];
                    middle -= (far.centre[x] - box_.centre[x]) * along;
                    reach += std::abs(along) * static_cast<double>(box_.half[x] + far.half[x]);
                }
                lowest[k] = static_cast<int>(std::ceil(middle - reach));
                size[k] = static_cast<int>(std::floor(middle + reach)) - lowest[k] + 1;
                if (size[k] < 0) size[k] = 0;
            }
        } else {
            size[0] = 0;
        }
        int end = size[0] * size[1] * size[2];
        for (int distance = 1; distance < 32; distance *= 2) {
            const int before = __shfl_sync(mlff::gpu::kAllLanes, end, at_.lane - distance);
            if (at_.lane >= distance) end += before;
        }
        __syncthreads();  // what follows has been read
        if (at_.lane == 31) shared_.of_warp[at_.warp] = end;
        __syncthreads();
        candidates_ = 0;
        for (int w = 0; w < mlff::gpu::kWarps; ++w) {
            if (w < at_.warp) end += shared_.of_warp[w];
            candidates_ += shared_.of_warp[w];
        }
        shared_.end[thread] = end;
        for (int k = 0; k < 3; ++k) {
            shared_.lowest[k][thread] = lowest[k];
            shared_.size[k][thread] = size[k];
        }
        __syncthreads();
    }

    // Tests a candidate for each thread, and adds those that come within the cutoff to the `found` ones. Returns how
    // many the block has added.
    __device__ int test(int candidate, int found) {
        FarTile<Real> far = {};
        const bool is_hit = candidate < candidates_ && comes_near(candidate, far);
        const unsigned hits = __ballot_sync(mlff::gpu::kAllLanes, is_hit ? 1 : 0);
        __syncthreads();  // of_warp has been read
        if (at_.lane == 0) shared_.of_warp[at_.warp] = __popc(hits);
        __syncthreads();
        int added = 0;
        for (int w = 0; w < mlff::gpu::kWarps; ++w) {
            if (w < at_.warp) found += shared_.of_warp[w];
            added += shared_.of_warp[w];
        }
        if (is_hit) shared_.found[found + __popc(hits & ((1u << at_.lane) - 1))] = far;
        return added;
    }

    __device__ bool comes_near(int candidate, FarTile<Real>& far) const {
        int source = 0;  // the thread whose candidates include this one
        for (int step = mlff::gpu::kBlockThreads / 2; step >= 1; step /= 2)
            if (shared_.end[source + step - 1] <= candidate) source += step;
        int index = candidate - (source > 0 ? shared_.end[source - 1] : 0);
        far.tile = begin_ - mlff::gpu::kBlockThreads + source;
        const TileBox<Real> other = work_.boxes[far.tile];
        double offset[3];
        for (int x = 0; x < 3; ++x) offset[x] = other.centre[x] - box_.centre[x];
        for (int k = 0; k < 3; ++k) {
            const int size = shared_.size[k][source];
            const int shift = shared_.lowest[k][source] + index % size;
            index /= size;
            if (work_.frame->periodic[k] == 0) continue;
            for (int x = 0; x < 3; ++x) offset[x] += shift * work_.frame->vectors[k][x];
        }
        Real square = 0;
        for (int x = 0; x < 3; ++x) {
            far.offset[x] = static_cast<Real>(offset[x]);
            const Real gap = std::abs(far.offset[x]) - (box_.half[x] + other.half[x]);
            if (gap > 0) square += gap * gap;
        }
        return square < most_square_;
    }

    const Work<Real>& work_;
    const TilePart& at_;
    const TileBox<Real> box_;
    const double cutoff_;
    const Real most_square_;
    Shared& shared_;
    int begin_ = 0;       // of the next batch
    int candidates_ = 0;  // of this batch
    int next_ = 0;        // of this part, among these
    int passed_ = 0;      // candidates of earlier batches, modulo the parts
};

// Calls visit(far) for the block's part of the tiles and images that its tile looks at and whose boxes come within the
// cutoff. They are dealt to the warps of the block in turn; all lanes of a warp call visit() together. Returns whether
// there were any for this warp.
template <class Real, class Visit>
__device__ __forceinline__ bool for_each_far_tile(const Work<Real>& work, const TilePart& at, double cutoff,
                                                  const Visit& visit) {
    __shared__ typename FarTileSearch<Real>::Shared shared;
    FarTileSearch<Real> search(work, at, cutoff, shared);
    bool has_any = false;
    while (const int found = search.find())
        for (int i = at.warp; i < found; i += mlff::gpu::kWarps) {
            const FarTile<Real> far = shared.found[i];
            visit(far);
            has_any = true;
        }
    return has_any;
}

}  // namespace mlff::dispersion::gpu
