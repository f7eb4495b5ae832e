// SPDX-License-Identifier: MIT
// The reference neighbour list for tests: deliberately simple, and independent of Lattice and of the cell list.
#include <cmath>

#include "core/error.h"
#include "neighbors/neighbor_list.h"

namespace mlff {
namespace {

double dot(const Vec3& a, const Vec3& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

// The dual vectors: d_k . cell[l] = (k == l) in the space of the periodic directions; zero elsewhere. Computed from the
// inverse of the Gram matrix, by Gauss-Jordan elimination.
Mat3 dual_vectors(const SystemView& system) {
    Mat3 gram{};
    Mat3 inverse{};
    for (size_t k = 0; k < 3; ++k) {
        for (size_t l = 0; l < 3; ++l)
            gram[k][l] = system.periodic[k] && system.periodic[l] ? dot(system.cell[k], system.cell[l]) : 0;
        if (!system.periodic[k]) gram[k][k] = 1;
        inverse[k][k] = 1;
    }
    for (size_t k = 0; k < 3; ++k) {
        const double pivot = gram[k][k];
        for (size_t l = 0; l < 3; ++l) {
            gram[k][l] /= pivot;
            inverse[k][l] /= pivot;
        }
        for (size_t row = 0; row < 3; ++row) {
            const double factor = gram[row][k];
            if (row == k) continue;
            for (size_t l = 0; l < 3; ++l) {
                gram[row][l] -= factor * gram[k][l];
                inverse[row][l] -= factor * inverse[k][l];
            }
        }
    }
    Mat3 dual{};
    for (size_t k = 0; k < 3; ++k)
        for (size_t l = 0; l < 3; ++l)
            for (size_t axis = 0; axis < 3; ++axis)
                if (system.periodic[k] && system.periodic[l]) dual[k][axis] += inverse[k][l] * system.cell[l][axis];
    return dual;
}

struct ImageRange {
    int from;
    int to;
};

// r + s a + ...| < cutoff implies |r . d + s| < cutoff |d|. One more image on both sides covers rounding.
ImageRange image_range(const Vec3& separation, const Vec3& dual, double cutoff) {
    if (dot(dual, dual) == 0) return {0, 0};
    const double middle = -dot(separation, dual);
    const double reach = cutoff * std::sqrt(dot(dual, dual));
    return {static_cast<int>(std::floor(middle - reach)) - 1, static_cast<int>(std::ceil(middle + reach)) + 1};
}

bool is_wanted(bool half, int64_t receiver, int64_t sender, const std::array<int, 3>& shift) {
    const bool is_itself = receiver == sender && shift == std::array<int, 3>{0, 0, 0};
    if (!half) return !is_itself;
    return sender > receiver || (sender == receiver && shift > std::array<int, 3>{0, 0, 0});
}

}  // namespace

BruteForceEdges brute_force_neighbors(const SystemView& system, const NeighborOptions& options) {
    BruteForceEdges edges;
    edges.first.push_back(0);
    const Mat3 dual = dual_vectors(system);
    const double cutoff_squared = options.cutoff * options.cutoff;
    for (int64_t receiver = 0; receiver < system.atom_count; ++receiver) {
        const double* from = system.positions + 3 * receiver;
        for (int64_t sender = 0; sender < system.atom_count; ++sender) {
            const double* to = system.positions + 3 * sender;
            const Vec3 separation = {to[0] - from[0], to[1] - from[1], to[2] - from[2]};
            std::array<ImageRange, 3> range;
            for (size_t k = 0; k < 3; ++k) range[k] = image_range(separation, dual[k], options.cutoff);
            for (int s0 = range[0].from; s0 <= range[0].to; ++s0)
                for (int s1 = range[1].from; s1 <= range[1].to; ++s1)
                    for (int s2 = range[2].from; s2 <= range[2].to; ++s2) {
                        const Vec3 vector = edge_vector(from, to, shift_vector(system.cell, s0, s1, s2));
                        const double squared = squared_length(vector);
                        if (!(squared < cutoff_squared)) continue;
                        if (!is_wanted(options.half, receiver, sender, {s0, s1, s2})) continue;
                        edges.sender.push_back(static_cast<int32_t>(sender));
                        edges.shift.insert(edges.shift.end(), {s0, s1, s2});
                        edges.vector.insert(edges.vector.end(), vector.begin(), vector.end());
                        edges.distance.push_back(std::sqrt(squared));
                    }
        }
        edges.first.push_back(static_cast<int64_t>(edges.sender.size()));
    }
    return edges;
}

}  // namespace mlff
