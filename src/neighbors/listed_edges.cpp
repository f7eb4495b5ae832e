// SPDX-License-Identifier: MIT
#include "neighbors/listed_edges.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/parallel.h"

namespace mlff {
namespace {

void check_places(int64_t atom_count, const ListedNeighbors& list) {
    if (list.receiver_count < 0 || list.receiver_count > atom_count)
        fail(Status::argument, list.receiver_count, " atoms have neighbours, but there are ", atom_count, " atoms");
    if (!list.first) fail(Status::argument, "the offsets of the neighbour list (first) are NULL");
    if (list.first[0] != 0) fail(Status::argument, "the neighbours of atom 0 begin at ", list.first[0], ", expected 0");
    for (int64_t atom = 0; atom < list.receiver_count; ++atom)
        if (list.first[atom + 1] < list.first[atom])
            fail(Status::argument, "the neighbours of atom ", atom, " end at ", list.first[atom + 1],
                 ", before they begin at ", list.first[atom]);
    if (list.first[list.receiver_count] > 0 && !list.neighbors)
        fail(Status::argument, "the neighbour indices are NULL");
}

void check_neighbor(int64_t atom_count, int64_t atom, int32_t neighbor) {
    if (neighbor < 0 || neighbor >= atom_count || neighbor == atom)
        fail(Status::argument, "atom ", atom, " has neighbour ", neighbor, ", expected another of the ", atom_count,
             " atoms");
}

// A hash of the ordered pair.
uint64_t scrambled(int64_t a, int64_t b) {
    uint64_t x = static_cast<uint64_t>(a) << 32 | static_cast<uint64_t>(b);
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

}  // namespace

void check_listed_neighbors(int64_t atom_count, const ListedNeighbors& list) {
    check_places(atom_count, list);
    for (int64_t atom = 0; atom < list.receiver_count; ++atom)
        for (int64_t place = list.first[atom]; place < list.first[atom + 1]; ++place)
            check_neighbor(atom_count, atom, list.neighbors[place]);
}

// Compares the sums of the hashes of all pairs in both directions. They are equal if every pair is listed both ways;
// otherwise they differ, except with probability 2^-64.
void check_both_ways(const ListedNeighbors& list) {
    uint64_t there = 0, back = 0;
    for (int64_t atom = 0; atom < list.receiver_count; ++atom)
        for (int64_t place = list.first[atom]; place < list.first[atom + 1]; ++place) {
            const int64_t other = list.neighbors[place];
            if (other >= list.receiver_count) continue;
            there += scrambled(atom, other);
            back += scrambled(other, atom);
        }
    if (there == back) return;
    const auto times_listed = [&](int64_t atom, int64_t other) {
        return std::count(list.neighbors + list.first[atom], list.neighbors + list.first[atom + 1], other);
    };
    for (int64_t atom = 0; atom < list.receiver_count; ++atom)
        for (int64_t place = list.first[atom]; place < list.first[atom + 1]; ++place) {
            const int64_t other = list.neighbors[place];
            if (other < list.receiver_count && times_listed(atom, other) != times_listed(other, atom))
                fail(Status::argument, "atom ", atom, " lists atom ", other,
                     " as its neighbour, but not the other way round; list each pair in both directions");
        }
}

const Edges& ListedEdges::select(int64_t atom_count, const double* positions, const ListedNeighbors& list,
                                 double cutoff, ThreadTeam& team) {
    edges_ = {};
    check_places(atom_count, list);
    const double most = cutoff * cutoff;
    const auto vector_of = [&](int64_t atom, int64_t place) {
        return edge_vector(positions + 3 * atom, positions + 3 * int64_t{list.neighbors[place]}, {0, 0, 0});
    };
    first_.resize_discard(static_cast<size_t>(atom_count) + 1);
    first_[0] = 0;
    for_each_atom(team, list.receiver_count, [&](int64_t atom) {
        int64_t count = 0;
        for (int64_t place = list.first[atom]; place < list.first[atom + 1]; ++place) {
            const int32_t neighbor = list.neighbors[place];
            check_neighbor(atom_count, atom, neighbor);
            const double squared = squared_length(vector_of(atom, place));
            if (squared == 0) fail(Status::system, "atoms ", atom, " and ", neighbor, " are at the same place");
            if (squared < most) ++count;
        }
        first_[static_cast<size_t>(atom) + 1] = count;
    });
    for (size_t atom = 0; atom < static_cast<size_t>(atom_count); ++atom)
        first_[atom + 1] = first_[atom] + (static_cast<int64_t>(atom) < list.receiver_count ? first_[atom + 1] : 0);
    const auto edge_count = static_cast<size_t>(first_[static_cast<size_t>(atom_count)]);
    sender_.resize_discard(edge_count);
    vector_.resize_discard(3 * edge_count);
    distance_.resize_discard(edge_count);
    for_each_atom(team, list.receiver_count, [&](int64_t atom) {
        auto edge = static_cast<size_t>(first_[static_cast<size_t>(atom)]);
        for (int64_t place = list.first[atom]; place < list.first[atom + 1]; ++place) {
            const Vec3 vector = vector_of(atom, place);
            const double squared = squared_length(vector);
            if (!(squared < most)) continue;
            sender_[edge] = list.neighbors[place];
            for (size_t k = 0; k < 3; ++k) vector_[3 * edge + k] = vector[k];
            distance_[edge++] = std::sqrt(squared);
        }
    });
    edges_.atom_count = atom_count;
    edges_.edge_count = static_cast<int64_t>(edge_count);
    edges_.first = first_.data();
    edges_.sender = sender_.data();
    edges_.vector = vector_.data();
    edges_.distance = distance_.data();
    return edges_;
}

}  // namespace mlff
