// SPDX-License-Identifier: MIT
#include "neighbors/edge_arrays.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/error.h"

namespace mlff {
namespace {

// The output arrays; null if not wanted.
struct Targets {
    int32_t* sender;
    int32_t* shift;
    double* vector;
    double* distance;
};

void fill_chunk(const CellList& cells, const PairList& pairs, int64_t chunk, const Mat3& cell, const int64_t* first,
                const Targets& targets) {
    const Targets to = targets;
    const Site* sites = cells.sites.data();
    const PairList::Chunk& found = pairs.chunk[static_cast<size_t>(chunk)];
    const int32_t* neighbor = found.neighbor.data();
    const ImageRun* run = found.run.data();
    std::array<int32_t, 3> last_shift{};  // consecutive pairs mostly share it
    Vec3 translation = shift_vector(cell, 0, 0, 0);
    for (int64_t atom = pairs.chunk_begin(chunk); atom < pairs.chunk_end(chunk); ++atom) {
        const Site receiver = sites[atom];
        int64_t edge = first[receiver.atom];
        const ImageRun* last_run = run + pairs.run_count[static_cast<size_t>(atom)];
        for (; run < last_run; ++run) {
            const auto image = unpack_image(run->image);
            for (const int32_t* end = neighbor + run->count; neighbor < end; ++neighbor, ++edge) {
                const Site& sender = sites[*neighbor];
                const auto shift = pair_shift(receiver, sender, image);
                if (shift != last_shift) {
                    last_shift = shift;
                    translation = shift_vector(cell, shift[0], shift[1], shift[2]);
                }
                const Vec3 vector = edge_vector(receiver.position.data(), sender.position.data(), translation);
                to.sender[edge] = sender.atom;
                if (to.shift)
                    for (int64_t k = 0; k < 3; ++k) to.shift[3 * edge + k] = shift[static_cast<size_t>(k)];
                if (to.vector)
                    for (int64_t k = 0; k < 3; ++k) to.vector[3 * edge + k] = vector[static_cast<size_t>(k)];
                if (to.distance) to.distance[edge] = std::sqrt(squared_length(vector));
            }
        }
    }
}

}  // namespace

Edges EdgeArrays::fill(const CellList& cells, const PairList& pairs, const Mat3& cell, const NeighborOptions& options,
                       ThreadTeam& team) {
    count_edges(pairs);
    const auto edge_count = static_cast<size_t>(first_[static_cast<size_t>(pairs.atom_count)]);
    const bool fill_shifts = options.want_shifts || options.want_reverse;
    sender_.resize_discard(edge_count);
    if (fill_shifts) shift_.resize_discard(3 * edge_count);
    if (options.want_vectors) vector_.resize_discard(3 * edge_count);
    if (options.want_distances) distance_.resize_discard(edge_count);
    const Targets targets = {sender_.data(), fill_shifts ? shift_.data() : nullptr,
                             options.want_vectors ? vector_.data() : nullptr,
                             options.want_distances ? distance_.data() : nullptr};
    const auto work = [&](int64_t chunk, int) { fill_chunk(cells, pairs, chunk, cell, first_.data(), targets); };
    team.run(pairs.chunk_count, std::ref(work));  // by reference: std::function need not allocate
    if (options.want_reverse) find_reverse(pairs.atom_count, team);

    Edges edges;
    edges.atom_count = pairs.atom_count;
    edges.edge_count = static_cast<int64_t>(edge_count);
    edges.first = first_.data();
    edges.sender = targets.sender;
    edges.shift = options.want_shifts ? targets.shift : nullptr;
    edges.vector = targets.vector;
    edges.distance = targets.distance;
    edges.reverse = options.want_reverse ? reverse_.data() : nullptr;
    return edges;
}

void EdgeArrays::count_edges(const PairList& pairs) {
    const auto atoms = static_cast<size_t>(pairs.atom_count);
    first_.resize_discard(atoms + 1);
    first_[0] = 0;
    for (size_t atom = 0; atom < atoms; ++atom) first_[atom + 1] = first_[atom] + pairs.neighbor_count[atom];
}

void EdgeArrays::find_reverse(int64_t atom_count, ThreadTeam& team) {
    constexpr int64_t kAtomsPerChunk = 128;
    reverse_.resize_discard(sender_.size());
    const auto find = [&](int64_t chunk, int) {
        const int64_t end = std::min(atom_count, (chunk + 1) * kAtomsPerChunk);
        for (int64_t receiver = chunk * kAtomsPerChunk; receiver < end; ++receiver)
            for (int64_t edge = first_[static_cast<size_t>(receiver)]; edge < first_[static_cast<size_t>(receiver) + 1];
                 ++edge) {
                const int64_t sender = sender_[static_cast<size_t>(edge)];
                if (sender < receiver) continue;
                const int64_t reverse = reverse_of(receiver, edge);
                reverse_[static_cast<size_t>(edge)] = reverse;
                if (sender > receiver) reverse_[static_cast<size_t>(reverse)] = edge;
            }
    };
    team.run((atom_count + kAtomsPerChunk - 1) / kAtomsPerChunk, std::ref(find));
}

// The search visits the bins around every atom in the same order, so the reverse edge is near the mirrored position in
// the sender's list. A search outwards from there takes few steps.
int64_t EdgeArrays::reverse_of(int64_t receiver, int64_t edge) const {
    const auto is_reverse = [&](int64_t other) {
        const int32_t* s = shift_.data() + 3 * edge;
        const int32_t* t = shift_.data() + 3 * other;
        return sender_[static_cast<size_t>(other)] == receiver && s[0] == -t[0] && s[1] == -t[1] && s[2] == -t[2];
    };
    const auto sender = static_cast<size_t>(sender_[static_cast<size_t>(edge)]);
    const int64_t begin = first_[sender];
    const int64_t end = first_[sender + 1];
    const int64_t mirrored = end - 1 - (edge - first_[static_cast<size_t>(receiver)]);
    int64_t low = std::clamp(mirrored, begin, end - 1);
    int64_t high = low + 1;
    while (low >= begin || high < end) {
        if (low >= begin && is_reverse(low)) return low;
        if (high < end && is_reverse(high)) return high;
        --low;
        ++high;
    }
    fail(Status::internal, "an edge has no reverse edge");
}

}  // namespace mlff
