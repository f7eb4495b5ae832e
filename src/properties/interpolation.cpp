// SPDX-License-Identifier: MIT
#include "properties/interpolation.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "dynamics/counter_random.h"
#include "neighbors/neighbor_list.h"
#include "properties/band.h"

namespace mlff {
namespace {

constexpr double kPairReach = 6;        // angstrom: pairs farther apart on the whole path do not count
constexpr double kSmallDistance = 0.1;  // angstrom: below, atoms are on top of each other

struct WantedPair {
    int32_t first = 0, second = 0;
    std::array<int32_t, 3> shift{};  // of the second, in lattice vectors
    double first_distance = 0, last_distance = 0;

    bool operator<(const WantedPair& other) const {
        return std::tie(first, second, shift) < std::tie(other.first, other.second, other.shift);
    }
    bool operator==(const WantedPair& other) const {
        return first == other.first && second == other.second && shift == other.shift;
    }
};

Vec3 pair_vector(const WantedPair& pair, const Image& image, const Mat3& cell) {
    return edge_vector(image.data() + 3 * pair.first, image.data() + 3 * pair.second,
                       shift_vector(cell, pair.shift[0], pair.shift[1], pair.shift[2]));
}

// Pairs that are near in any image.
std::vector<WantedPair> pairs_on_path(const std::vector<Image>& path, const Particles& atoms) {
    ThreadTeam team(1);
    NeighborOptions options;
    options.cutoff = kPairReach;
    options.half = true;
    std::vector<WantedPair> pairs;
    for (const Image& image : path) {
        SystemView system = atoms.view();
        system.positions = image.data();
        NeighborList list(options);
        list.update(system, team);
        const Edges& edges = list.edges();
        for (int64_t atom = 0; atom < edges.atom_count; ++atom)
            for (int64_t edge = edges.first[atom]; edge < edges.first[atom + 1]; ++edge) {
                const int32_t* const shift = edges.shift + 3 * edge;
                if (edges.sender[edge] == atom) continue;  // the distance to its own copy never changes
                pairs.push_back({static_cast<int32_t>(atom), edges.sender[edge], {shift[0], shift[1], shift[2]}});
            }
        std::sort(pairs.begin(), pairs.end());
        pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
    }
    const Mat3& cell = atoms.environment.cell;
    for (WantedPair& pair : pairs) {
        pair.first_distance = std::sqrt(squared_length(pair_vector(pair, path.front(), cell)));
        pair.last_distance = std::sqrt(squared_length(pair_vector(pair, path.back(), cell)));
    }
    return pairs;
}

// Sum over pairs of (distance - wanted)^2 / distance^4, `part` of the way from the first image to the last.
ImageResult pair_potential(const Image& image, double part, const std::vector<WantedPair>& pairs, const Mat3& cell) {
    ImageResult result;
    result.forces.resize(image.size());
    for (size_t k = 0; k < pairs.size(); ++k) {
        const WantedPair& pair = pairs[k];
        Vec3 vector = pair_vector(pair, image, cell);
        double distance = std::sqrt(squared_length(vector));
        if (distance < kSmallDistance) {  // some direction, the same in all images
            vector = random_normals(0, 0, k);
            const double length = std::sqrt(squared_length(vector));
            for (double& x : vector) x *= kSmallDistance / length;
            distance = kSmallDistance;
        }
        const double wanted = (1 - part) * pair.first_distance + part * pair.last_distance;
        const double excess = distance - wanted, square = distance * distance;
        const double weight = 1 / (square * square);
        result.energy += weight * excess * excess;
        const double slope = weight * (2 * excess - 4 * excess * excess / distance);
        for (size_t i = 0; i < 3; ++i) {
            const double force = slope * vector[i] / distance;
            result.forces[3 * static_cast<size_t>(pair.first) + i] += force;
            result.forces[3 * static_cast<size_t>(pair.second) + i] -= force;
        }
    }
    return result;
}

}  // namespace

std::vector<Image> pair_potential_path(const Image& first, const Image& last, size_t count, const Particles& atoms) {
    std::vector<Image> path = linear_path(first, last, count);
    const std::vector<WantedPair> pairs = pairs_on_path(path, atoms);
    // The potential is another one for every image: only the images between the ends are computed after the first time.
    const auto potential = [&](std::span<const Image> images) {
        std::vector<ImageResult> results;
        const size_t begin = images.size() == count ? 0 : 1;
        for (size_t k = 0; k < images.size(); ++k)
            results.push_back(pair_potential(images[k], static_cast<double>(k + begin) / static_cast<double>(count - 1),
                                             pairs, atoms.environment.cell));
        return results;
    };
    BandOptions options;
    options.climbs = false;
    options.spring = 0.1;
    options.largest_force = 0.02;
    options.step_limit = 300;
    Band band(std::move(path), atoms.is_fixed, rigid_motion_of(atoms), options);
    for (band.evaluate(potential); !band.is_finished(); band.evaluate(potential)) band.move();
    return band.images();
}

}  // namespace mlff
