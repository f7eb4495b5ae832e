// SPDX-License-Identifier: MIT
// Systems to try neighbour lists on, and edges in a form that compares exactly.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "core/error.h"
#include "neighbors/neighbor_list.h"

namespace mlff::testing {

// A system that owns its positions.
struct Atoms {
    std::vector<double> positions;
    Mat3 cell{};
    std::array<bool, 3> periodic{};

    SystemView view() const {
        SystemView system;
        system.atom_count = static_cast<int64_t>(positions.size() / 3);
        system.positions = positions.data();
        system.cell = cell;
        system.periodic = periodic;
        return system;
    }
};

struct Random {
    std::mt19937_64 generator;
    explicit Random(uint64_t seed) : generator(seed) {}
    double uniform(double low, double high) { return std::uniform_real_distribution<double>(low, high)(generator); }
    int integer(int low, int high) { return std::uniform_int_distribution<int>(low, high)(generator); }
};

inline double determinant(const Mat3& m) {
    return m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1]) - m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0]) +
           m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0]);
}

// Triclinic of either hand, sometimes flat or elongated; never nearly degenerate.
inline Mat3 random_cell(Random& random) {
    for (;;) {
        Mat3 cell;
        double edges = 1;
        const double skew = random.integer(0, 3) == 0 ? 0 : random.uniform(0, 1.5);
        for (size_t k = 0; k < 3; ++k) {
            const double length = random.integer(0, 4) == 0 ? random.uniform(8, 30) : random.uniform(1.5, 8);
            for (size_t axis = 0; axis < 3; ++axis)
                cell[k][axis] = length * (skew * random.uniform(-1, 1) + (k == axis ? 1 : 0));
            edges *= std::hypot(cell[k][0], cell[k][1], cell[k][2]);
        }
        if (random.integer(0, 1) == 0) std::swap(cell[0], cell[1]);
        if (std::abs(determinant(cell)) > 0.1 * edges) return cell;
    }
}

inline Atoms random_atoms(Random& random, int most_atoms) {
    Atoms atoms;
    atoms.cell = random_cell(random);
    const int directions = random.integer(0, 7);
    for (size_t k = 0; k < 3; ++k) atoms.periodic[k] = (directions >> k & 1) != 0;
    const int count = random.integer(1, most_atoms);
    const double spread = random.integer(0, 2) == 0 ? 20 : random.integer(0, 1) == 0 ? 1.5 : 0.5;
    for (int atom = 0; atom < count; ++atom) {
        Vec3 f;
        for (double& component : f) component = 0.5 + random.uniform(-spread, spread);
        if (random.integer(0, 9) == 0) f[0] = 0;  // exactly on a face
        for (size_t axis = 0; axis < 3; ++axis)
            atoms.positions.push_back(f[0] * atoms.cell[0][axis] + f[1] * atoms.cell[1][axis] +
                                      f[2] * atoms.cell[2][axis]);
    }
    if (count > 1 && random.integer(0, 3) == 0) std::copy_n(&atoms.positions[0], 3, &atoms.positions[3]);
    for (size_t k = 0; k < 3; ++k)
        if (!atoms.periodic[k] && random.integer(0, 1) == 0) atoms.cell[k] = {0, 0, 0};
    return atoms;
}

// Of about as many neighbours as the oracle can list quickly.
inline double random_cutoff(Random& random, const Atoms& atoms) {
    const double largest = atoms.positions.size() > 60 ? 7 : 12;
    return random.uniform(0.3, largest);
}

struct Edge {
    int64_t receiver;
    int32_t sender;
    std::array<int32_t, 3> shift;
    std::array<uint64_t, 4> bits;  // of the vector and the distance: compared exactly
    auto operator<=>(const Edge&) const = default;
};

inline std::array<uint64_t, 4> bits_of(const double* vector, double distance) {
    const std::array<double, 4> values = {vector[0], vector[1], vector[2], distance};
    std::array<uint64_t, 4> bits;
    std::memcpy(bits.data(), values.data(), sizeof bits);
    return bits;
}

template <class AnyEdges>
std::vector<Edge> list_edges(const AnyEdges& edges, int64_t atom_count) {
    std::vector<Edge> list;
    for (int64_t receiver = 0; receiver < atom_count; ++receiver)
        for (auto k = static_cast<size_t>(edges.first[static_cast<size_t>(receiver)]);
             k < static_cast<size_t>(edges.first[static_cast<size_t>(receiver) + 1]); ++k)
            list.push_back({receiver,
                            edges.sender[k],
                            {edges.shift[3 * k], edges.shift[3 * k + 1], edges.shift[3 * k + 2]},
                            bits_of(&edges.vector[3 * k], edges.distance[k])});
    return list;
}

inline std::vector<Edge> sorted(std::vector<Edge> edges) {
    std::sort(edges.begin(), edges.end());
    return edges;
}

inline std::vector<Edge> expected_edges(const SystemView& system, const NeighborOptions& options) {
    return list_edges(brute_force_neighbors(system, options), system.atom_count);
}

inline NeighborOptions with_cutoff(double cutoff) {
    NeighborOptions options;
    options.cutoff = cutoff;
    return options;
}

inline ThreadTeam& team() {
    static ThreadTeam two(2);
    return two;
}

inline Atoms simple_cubic(double edge) {
    Atoms atoms;
    atoms.positions = {0.1, 0.2, 0.3};
    for (size_t k = 0; k < 3; ++k) atoms.cell[k][k] = edge;
    atoms.periodic = {true, true, true};
    return atoms;
}

// Enough atoms for many chunks and bins.
inline Atoms liquid(Random& random, int per_edge) {
    Atoms atoms = simple_cubic(2.2 * per_edge);
    atoms.positions.clear();
    for (int i = 0; i < per_edge * per_edge * per_edge; ++i)
        for (const int cell : {i % per_edge, i / per_edge % per_edge, i / per_edge / per_edge})
            atoms.positions.push_back(2.2 * cell + random.uniform(-0.8, 0.8));
    return atoms;
}

template <class Call>
std::string message_of(Status expected, const Call& call) {
    try {
        call();
    } catch (const Error& error) {
        CHECK(error.status() == expected);
        CHECK_FALSE(std::string(error.what()).ends_with('.'));  // one clause, which callers may put into a sentence
        return error.what();
    }
    return "nothing was thrown";
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace mlff::testing
