// SPDX-License-Identifier: MIT
// Neighbour lists: all pairs closer than a cutoff, periodic images included, in O(N) time and memory.
//
// An edge states that atom `sender`, displaced by `shift` lattice vectors, is a neighbour of the receiving atom:
//   vector = (x[sender] - x[receiver]) + (shift[0] a + shift[1] b + shift[2] c),   |vector|^2 < cutoff^2,
// evaluated in this order in double precision, without fused multiply-adds. All implementations use `edge_vector`
// below, so they agree on every pair to the last bit.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/buffer.h"
#include "core/host_device.h"
#include "core/system_view.h"
#include "core/threads.h"

namespace mlff {

struct NeighborOptions {
    double cutoff = 0;  // angstrom
    double skin = 0;    // angstrom; candidates up to cutoff + skin are reused while that gives exact results
    bool half = false;  // each pair once: sender > receiver, or an atom's own image whose first non-zero shift is > 0
    bool want_shifts = true;
    bool want_vectors = true;
    bool want_distances = true;
    bool want_reverse = false;    // not with `half`
    bool is_brute_force = false;  // looks at all pairs instead of those in neighbouring bins: O(N^2), for comparisons
    int64_t memory_bytes = 0;     // if the pairs within cutoff + skin would take more, they are refused; 0 = no limit
};

// Throws Error{argument} for an invalid cutoff or skin, or a half list with reverse edges.
void check_options(const NeighborOptions& options);

// Edges grouped by receiver: atom i receives edges first[i] ... first[i + 1] - 1. The order within an atom depends only
// on the positions at the last search, not on the number of threads.
struct Edges {
    int64_t atom_count = 0;
    int64_t edge_count = 0;
    const int64_t* first = nullptr;    // [atom_count + 1]
    const int32_t* sender = nullptr;   // [edge_count]
    const int32_t* shift = nullptr;    // [edge_count][3]
    const double* vector = nullptr;    // [edge_count][3], receiver to neighbour, angstrom
    const double* distance = nullptr;  // [edge_count]
    const int64_t* reverse = nullptr;  // [edge_count]: the same pair in the opposite direction, with the opposite shift
};

MLFF_HOST_DEVICE inline Vec3 shift_vector(const Mat3& cell, int s0, int s1, int s2) {
    Vec3 sum;
    for (size_t k = 0; k < 3; ++k) sum[k] = (s0 * cell[0][k] + s1 * cell[1][k]) + s2 * cell[2][k];
    return sum;
}
MLFF_HOST_DEVICE inline Vec3 edge_vector(const double* receiver, const double* sender, const Vec3& shift) {
    return {(sender[0] - receiver[0]) + shift[0], (sender[1] - receiver[1]) + shift[1],
            (sender[2] - receiver[2]) + shift[2]};
}
MLFF_HOST_DEVICE inline double squared_length(const Vec3& v) { return (v[0] * v[0] + v[1] * v[1]) + v[2] * v[2]; }

// A neighbour list that is kept from step to step. Used by one thread at a time.
class NeighborList {
public:
    explicit NeighborList(const NeighborOptions& options);  // throws for an invalid cutoff or skin
    ~NeighborList();
    NeighborList(NeighborList&&) noexcept;

    // Updates `edges()` for these atoms. Reuses the candidates if and only if atom count, cell and periodic directions
    // are the same and the two largest displacements since the search add up to at most the skin: then no pair that was
    // beyond cutoff + skin can be within the cutoff now. Throws Error{system} for NaN, flat cells, a cutoff that would
    // need far too many images, or atoms far too close together, and Error{memory} for a list that does not fit into
    // memory; the list is then empty, and the next update searches.
    void update(const SystemView& system, ThreadTeam& team);

    const Edges& edges() const;
    const NeighborOptions& options() const;
    bool was_reused() const;
    int64_t build_count() const;

private:
    struct State;
    std::unique_ptr<State> state_;
};

// The reference for tests: every pair of atoms and every image within reach, O(N^2). Same conventions and options (skin
// is ignored); the edges of an atom are ordered by sender, then shift. NeighborList must accept the system.
struct BruteForceEdges {
    std::vector<int64_t> first;
    std::vector<int32_t> sender;
    std::vector<int32_t> shift;
    std::vector<double> vector;
    std::vector<double> distance;
};
BruteForceEdges brute_force_neighbors(const SystemView& system, const NeighborOptions& options);

}  // namespace mlff
