// SPDX-License-Identifier: MIT
#include "neighbors/pair_selection.h"

#include <functional>

#include "neighbors/neighbor_list.h"

namespace mlff {
namespace {

struct Selector {
    const CellList& cells;
    const Mat3& cell;
    double cutoff_squared;

    // Copies the neighbours of one image that are within the cutoff. Returns their number.
    int32_t select_run(size_t receiver, const ImageRun& run, const int32_t* candidate, int32_t* kept) const {
        const auto image = unpack_image(run.image);
        const Site& from = cells.sites[receiver];
        std::array<int32_t, 3> last_shift{};  // consecutive pairs mostly share it
        Vec3 translation = shift_vector(cell, 0, 0, 0);
        int32_t count = 0;
        for (int32_t k = 0; k < run.count; ++k) {
            const Site& to = cells.sites[static_cast<size_t>(candidate[k])];
            const auto shift = pair_shift(from, to, image);
            if (shift != last_shift) {
                last_shift = shift;
                translation = shift_vector(cell, shift[0], shift[1], shift[2]);
            }
            const Vec3 vector = edge_vector(from.position.data(), to.position.data(), translation);
            kept[count] = candidate[k];
            count += static_cast<int32_t>(squared_length(vector) < cutoff_squared);
        }
        return count;
    }

    void select_chunk(const PairList& candidates, int64_t chunk, PairList& selected) const {
        const PairList::Chunk& from = candidates.chunk[static_cast<size_t>(chunk)];
        PairList::Chunk& to = selected.chunk[static_cast<size_t>(chunk)];
        to.neighbor.resize_discard(from.neighbor.size());
        to.run.resize_discard(from.run.size());
        const int32_t* candidate = from.neighbor.data();
        const ImageRun* run = from.run.data();
        int32_t* kept = to.neighbor.data();
        ImageRun* kept_run = to.run.data();
        for (int64_t atom = candidates.chunk_begin(chunk); atom < candidates.chunk_end(chunk); ++atom) {
            const auto receiver = static_cast<size_t>(atom);
            const int32_t* first_kept = kept;
            const ImageRun* first_run = kept_run;
            for (const ImageRun* end = run + candidates.run_count[receiver]; run < end; ++run) {
                const int32_t count = select_run(receiver, *run, candidate, kept);
                candidate += run->count;
                kept += count;
                if (count > 0) *kept_run++ = {run->image, count};
            }
            selected.neighbor_count[static_cast<size_t>(cells.sites[receiver].atom)] =
                static_cast<int32_t>(kept - first_kept);
            selected.run_count[receiver] = static_cast<int32_t>(kept_run - first_run);
        }
    }
};

}  // namespace

void select_pairs(const CellList& cells, const PairList& candidates, const Mat3& cell, double cutoff_squared,
                  ThreadTeam& team, PairList& selected) {
    const Selector selector = {cells, cell, cutoff_squared};
    selected.resize(candidates.atom_count);
    const auto select = [&](int64_t chunk, int) { selector.select_chunk(candidates, chunk, selected); };
    team.run(candidates.chunk_count, std::ref(select));  // by reference: std::function need not allocate
}

}  // namespace mlff
