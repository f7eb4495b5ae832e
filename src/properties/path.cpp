// SPDX-License-Identifier: MIT
#include "properties/path.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/elements.h"
#include "core/error.h"
#include "core/matrix3.h"
#include "neighbors/lattice.h"
#include "neighbors/neighbor_list.h"
#include "properties/eigenvalues.h"

namespace mlff {
namespace {

constexpr double kSamePlace = 1e-3;  // angstrom
constexpr double kOnTop = 0.4;       // angstrom: no bond is that short
constexpr size_t kCurvePoints = 20;  // between two images

Vec3 centre_of_image(std::span<const double> positions) {
    Vec3 centre{};
    for (size_t i = 0; i < positions.size(); ++i) centre[i % 3] += positions[i];
    for (double& x : centre) x /= std::max(static_cast<double>(positions.size() / 3), 1.0);
    return centre;
}

// The shortest of all vectors that differ from `vector` by lattice vectors.
Vec3 nearest_copy(const Vec3& vector, const Lattice& lattice) {
    Vec3 base = vector;
    for (size_t k = 0; k < 3; ++k) {
        if (!lattice.periodic[k]) continue;
        double fraction = 0;
        for (size_t i = 0; i < 3; ++i) fraction += vector[i] * lattice.inverse[i][k];
        for (size_t i = 0; i < 3; ++i) base[i] -= std::round(fraction) * lattice.vectors[k][i];
    }
    // In a skewed cell, rounded fractions are near the shortest vector, but need not be it.
    const auto reach = [&](size_t k) { return lattice.periodic[k] ? 1 : 0; };
    Vec3 best = base;
    for (int a = -reach(0); a <= reach(0); ++a)
        for (int b = -reach(1); b <= reach(1); ++b)
            for (int c = -reach(2); c <= reach(2); ++c) {
                const Vec3 shift = shift_vector(lattice.vectors, a, b, c);
                const Vec3 candidate = {base[0] + shift[0], base[1] + shift[1], base[2] + shift[2]};
                if (squared_length(candidate) < squared_length(best) - 1e-9) best = candidate;
            }
    return best;
}

// The rotation that brings `from` nearest to `to`, both about their centres, as a quaternion (Horn 1987): the
// eigenvector of the largest eigenvalue of a matrix of correlations. Unlike one from singular values, it never mirrors.
Mat3 best_rotation(std::span<const double> from, const Vec3& from_centre, std::span<const double> to,
                   const Vec3& to_centre) {
    Mat3 s{};
    for (size_t atom = 0; atom < from.size(); atom += 3)
        for (size_t i = 0; i < 3; ++i)
            for (size_t j = 0; j < 3; ++j) s[i][j] += (from[atom + i] - from_centre[i]) * (to[atom + j] - to_centre[j]);
    const std::vector<double> matrix = {
        s[0][0] + s[1][1] + s[2][2],  s[1][2] - s[2][1], s[2][0] - s[0][2], s[0][1] - s[1][0], s[1][2] - s[2][1],
        s[0][0] - s[1][1] - s[2][2],  s[0][1] + s[1][0], s[2][0] + s[0][2], s[2][0] - s[0][2], s[0][1] + s[1][0],
        -s[0][0] + s[1][1] - s[2][2], s[1][2] + s[2][1], s[0][1] - s[1][0], s[2][0] + s[0][2], s[1][2] + s[2][1],
        -s[0][0] - s[1][1] + s[2][2]};
    const Eigenvectors<double> solved = eigenvectors_of_symmetric(matrix, 4);
    const double w = solved.vectors[12], x = solved.vectors[13], y = solved.vectors[14], z = solved.vectors[15];
    return {{{w * w + x * x - y * y - z * z, 2 * (x * y - w * z), 2 * (x * z + w * y)},
             {2 * (x * y + w * z), w * w - x * x + y * y - z * z, 2 * (y * z - w * x)},
             {2 * (x * z - w * y), 2 * (y * z + w * x), w * w - x * x - y * y + z * z}}};
}

std::string lattice_vector_text(const Vec3& vector) {
    return concat("(", vector[0], ", ", vector[1], ", ", vector[2], ")");
}

void check_same_cell(const SystemView& first, const SystemView& second) {
    for (size_t k = 0; k < 3; ++k) {
        if (first.periodic[k] != second.periodic[k])
            fail(Status::system, "the first structure is ", first.periodic[k] ? "" : "not ", "periodic in direction ",
                 k + 1, " and the second is", second.periodic[k] ? "" : " not", "; a path needs one cell");
        for (size_t i = 0; first.periodic[k] && i < 3; ++i)
            if (!(std::abs(first.cell[k][i] - second.cell[k][i]) <= kSamePlace))
                fail(Status::system, "lattice vector ", k + 1, " is ", lattice_vector_text(first.cell[k]),
                     " A in the first structure and ", lattice_vector_text(second.cell[k]),
                     " A in the second; a path needs one cell");
    }
}

}  // namespace

RigidMotion rigid_motion_of(const Particles& atoms) {
    if (atoms.has_fixed_atoms()) return RigidMotion::none;
    return atoms.environment.is_periodic() ? RigidMotion::translation : RigidMotion::translation_and_rotation;
}

double length_of(std::span<const double> vector) {
    return std::sqrt(std::inner_product(vector.begin(), vector.end(), vector.begin(), 0.0));
}

Image difference_of(const Image& to, const Image& from) {
    Image result(to.size());
    for (size_t i = 0; i < to.size(); ++i) result[i] = to[i] - from[i];
    return result;
}

double largest_move(std::span<const double> vector) {
    double largest = 0;
    for (size_t i = 0; i + 2 < vector.size(); i += 3)
        largest = std::max(largest, std::hypot(vector[i], vector[i + 1], vector[i + 2]));
    return largest;
}

void project_out(std::span<const Image> directions, std::span<double> vector) {
    for (const Image& direction : directions) {
        const double part = std::inner_product(vector.begin(), vector.end(), direction.begin(), 0.0);
        for (size_t i = 0; i < vector.size(); ++i) vector[i] -= part * direction[i];
    }
}

std::vector<Image> rigid_directions(const Image& image, RigidMotion motion) {
    std::vector<Image> directions;
    const auto add = [&](Image direction) {
        const double before = length_of(direction);
        project_out(directions, direction);
        const double length = length_of(direction);
        if (!(length > 1e-6 * before) || !(length > 1e-6)) return;  // the axis of a linear molecule
        for (double& x : direction) x /= length;
        directions.push_back(std::move(direction));
    };
    if (motion == RigidMotion::none) return directions;
    for (size_t k = 0; k < 3; ++k) {
        Image shift(image.size());
        for (size_t i = k; i < image.size(); i += 3) shift[i] = 1;
        add(std::move(shift));
    }
    if (motion == RigidMotion::translation) return directions;
    const Vec3 centre = centre_of_image(image);
    for (size_t k = 0; k < 3; ++k) {
        Image turn(image.size());
        for (size_t i = 0; i + 2 < image.size(); i += 3) {
            const Vec3 arm = {image[i] - centre[0], image[i + 1] - centre[1], image[i + 2] - centre[2]};
            const Vec3 moved = cross(kIdentity[k], arm);
            std::copy(moved.begin(), moved.end(), turn.begin() + static_cast<std::ptrdiff_t>(i));
        }
        add(std::move(turn));
    }
    return directions;
}

void check_same_atoms(const Particles& first, const Particles& second) {
    if (first.atom_count() != second.atom_count())
        fail(Status::system, "the first structure has ", first.atom_count(), " atoms and the second has ",
             second.atom_count(), "; a path needs the same atoms in the same order");
    for (size_t atom = 0; atom < first.atom_count(); ++atom)
        if (first.atomic_numbers[atom] != second.atomic_numbers[atom])
            fail(Status::system, "atom ", atom, " is ", element_symbol(first.atomic_numbers[atom]),
                 " in the first structure and ", element_symbol(second.atomic_numbers[atom]),
                 " in the second; a path needs the same atoms in the same order");
    check_same_cell(first.environment, second.environment);
    if (first.environment.total_charge != second.environment.total_charge ||
        first.environment.spin_multiplicity != second.environment.spin_multiplicity)
        fail(Status::system, "the structures have different charges or spins; a path needs the same electrons");
    const Lattice lattice = make_lattice(first.environment);
    for (size_t atom = 0; atom < first.atom_count(); ++atom) {
        if (first.moves(atom) != second.moves(atom))
            fail(Status::system, "atom ", atom, " is fixed in one structure and free in the other");
        if (first.moves(atom)) continue;
        const double* const from = first.positions.data() + 3 * atom;
        const double* const to = second.positions.data() + 3 * atom;
        const double distance =
            std::sqrt(squared_length(nearest_copy({to[0] - from[0], to[1] - from[1], to[2] - from[2]}, lattice)));
        if (!(distance <= kSamePlace))
            fail(Status::system, "atom ", atom, " is fixed, but is ", distance,
                 " A away from its place in the second structure");
    }
}

void connect(std::span<Image> path, const SystemView& environment, RigidMotion motion) {
    if (path.empty()) return;
    const Lattice lattice = make_lattice(environment);
    for (size_t index = 1; index < path.size(); ++index) {
        const Image& before = path[index - 1];
        Image& image = path[index];
        for (size_t i = 0; environment.is_periodic() && i + 2 < image.size(); i += 3) {
            const Vec3 move = nearest_copy(
                {image[i] - before[i], image[i + 1] - before[i + 1], image[i + 2] - before[i + 2]}, lattice);
            for (size_t k = 0; k < 3; ++k) image[i + k] = before[i + k] + move[k];
        }
        if (motion == RigidMotion::none) continue;
        const Vec3 from = centre_of_image(image), to = centre_of_image(before);
        const Mat3 rotation =
            motion == RigidMotion::translation_and_rotation ? best_rotation(image, from, before, to) : kIdentity;
        for (size_t i = 0; i < image.size(); ++i) image[i] -= from[i % 3];
        transform_vectors(rotation, image.data(), image.size() / 3);
        for (size_t i = 0; i < image.size(); ++i) image[i] += to[i % 3];
    }
}

std::vector<Image> linear_path(const Image& first, const Image& last, size_t count) {
    const std::vector<Image> ends = {first, last};
    return spread_images(ends, count);
}

std::vector<Image> spread_images(std::span<const Image> path, size_t count) {
    const std::vector<double> distances = distances_along(path);
    std::vector<Image> images = {path.front()};
    size_t segment = 0;
    for (size_t k = 1; k + 1 < count; ++k) {
        const double wanted = distances.back() * static_cast<double>(k) / static_cast<double>(count - 1);
        while (segment + 2 < path.size() && distances[segment + 1] < wanted) ++segment;
        const double length = distances[segment + 1] - distances[segment];
        const double part = length > 0 ? (wanted - distances[segment]) / length : 0;
        Image image = path[segment];
        for (size_t i = 0; i < image.size(); ++i) image[i] += part * (path[segment + 1][i] - path[segment][i]);
        images.push_back(std::move(image));
    }
    if (count > 1) images.push_back(path.back());
    return images;
}

std::vector<double> distances_along(std::span<const Image> path) {
    std::vector<double> distances(path.size());
    for (size_t k = 1; k < path.size(); ++k)
        distances[k] = distances[k - 1] + length_of(difference_of(path[k], path[k - 1]));
    return distances;
}

void check_atoms_are_apart(std::span<const Image> path, const Particles& atoms) {
    ThreadTeam team(1);
    NeighborOptions options;
    options.cutoff = kOnTop;
    options.half = true;
    for (size_t k = 0; k < path.size(); ++k) {
        SystemView system = atoms.view();
        system.positions = path[k].data();
        NeighborList list(options);
        list.update(system, team);
        const Edges& edges = list.edges();
        for (int64_t atom = 0; atom < edges.atom_count; ++atom) {
            if (edges.first[atom] == edges.first[atom + 1]) continue;
            const int64_t edge = edges.first[atom];
            fail(Status::system, "image ", k, " of the path has atoms ", atom, " and ", edges.sender[edge], " only ",
                 edges.distance[edge],
                 " A apart: give a path with images in between, or check that atoms have the same order in both ends");
        }
    }
}

PathCurve energy_curve(std::span<const double> distances, std::span<const double> energies,
                       std::span<const double> slopes) {
    PathCurve curve;
    for (size_t k = 0; k + 1 < distances.size(); ++k) {
        const double length = distances[k + 1] - distances[k];
        for (size_t point = 0; point < kCurvePoints; ++point) {
            const double t = static_cast<double>(point) / kCurvePoints, u = 1 - t;
            curve.distances.push_back(distances[k] + t * length);
            curve.energies.push_back(u * u * (1 + 2 * t) * energies[k] + t * t * (3 - 2 * t) * energies[k + 1] +
                                     length * (t * u * u * slopes[k] - t * t * u * slopes[k + 1]));
        }
    }
    if (!distances.empty()) {
        curve.distances.push_back(distances.back());
        curve.energies.push_back(energies.back());
    }
    return curve;
}

}  // namespace mlff
