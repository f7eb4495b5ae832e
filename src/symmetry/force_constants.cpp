// SPDX-License-Identifier: MIT
#include "symmetry/force_constants.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.h"

namespace mlff {
namespace {

Vec3 turned(const Mat3& rotation, const Vec3& vector) {
    Vec3 result = vector;
    transform_vectors(rotation, result.data(), 1);
    return result;
}

Vec3 scaled_to(const Vec3& vector, double length) {
    const double factor = length / std::sqrt(dot(vector, vector));
    return {factor * vector[0], factor * vector[1], factor * vector[2]};
}

void add_outer_product(Mat3& sum, const Vec3& a, const Vec3& b) {
    for (size_t i = 0; i < 3; ++i)
        for (size_t j = 0; j < 3; ++j) sum[i][j] += a[i] * b[j];
}

// The volume that unit vectors span, squared, when many of them have been added: 0 in a plane.
double spanned(const std::vector<Vec3>& directions) {
    Mat3 sum{};
    for (const Vec3& direction : directions) add_outer_product(sum, direction, direction);
    return determinant(sum);
}

bool contains(const std::vector<Vec3>& directions, const Vec3& wanted) {
    constexpr double kSame = 1e-4;
    return std::any_of(directions.begin(), directions.end(), [&](const Vec3& direction) {
        const Vec3 difference = {direction[0] - wanted[0], direction[1] - wanted[1], direction[2] - wanted[2]};
        return dot(difference, difference) < kSame * kSame;
    });
}

// What the site operations make of a direction.
std::vector<Vec3> star_of(const Vec3& direction, const std::vector<const SymmetryOperation*>& site) {
    std::vector<Vec3> star;
    for (const SymmetryOperation* operation : site)
        if (const Vec3 image = turned(operation->rotation, direction); !contains(star, image)) star.push_back(image);
    return star;
}

// Fewest directions of `candidates` whose stars span space; then those that are opposite to one and in no star.
std::vector<Vec3> directions_for(const std::vector<const SymmetryOperation*>& site,
                                 const std::vector<Vec3>& candidates) {
    constexpr double kSpans = 0.1;  // three directions at right angles: 1
    std::vector<Vec3> chosen, covered;
    while (spanned(covered) < kSpans) {
        const Vec3* best = nullptr;
        std::vector<Vec3> best_covered;
        for (const Vec3& candidate : candidates) {
            std::vector<Vec3> all = covered;
            for (const Vec3& image : star_of(candidate, site)) all.push_back(image);
            // Rank first, so that a direction that is not yet covered wins even where three are still missing.
            const auto measure = [](const std::vector<Vec3>& vectors) {
                Mat3 sum = {{{1e-3, 0, 0}, {0, 1e-3, 0}, {0, 0, 1e-3}}};
                for (const Vec3& vector : vectors) {
                    const double weight = 1.0 / static_cast<double>(vectors.size());
                    add_outer_product(sum, scaled_to(vector, std::sqrt(weight)), scaled_to(vector, std::sqrt(weight)));
                }
                return determinant(sum);
            };
            constexpr double kClearly = 1.001;  // else the first candidate wins
            if (!best || measure(all) > kClearly * measure(best_covered)) best = &candidate, best_covered = all;
        }
        chosen.push_back(*best);
        covered = best_covered;
    }
    const size_t count = chosen.size();
    for (size_t i = 0; i < count; ++i) {
        const Vec3 opposite = {-chosen[i][0], -chosen[i][1], -chosen[i][2]};
        if (!contains(star_of(chosen[i], site), opposite)) chosen.push_back(opposite);
    }
    return chosen;
}

// Whether vectors whose outer products add up to `squares` span them.
bool are_three_directions(const Mat3& squares) {
    const double size = (squares[0][0] + squares[1][1] + squares[2][2]) / 3;
    return determinant(squares) > 1e-6 * size * size * size;
}

}  // namespace

SymmetryGroup::SymmetryGroup(size_t atom_count, std::vector<SymmetryOperation> operations)
    : operations_(std::move(operations)), representative_(atom_count, -1), path_(atom_count) {
    if (operations_.empty()) {
        SymmetryOperation identity;
        identity.moved_to.resize(atom_count);
        std::iota(identity.moved_to.begin(), identity.moved_to.end(), 0);
        operations_.push_back(std::move(identity));
    }
    for (size_t atom = 0; atom < atom_count; ++atom) {
        if (representative_[atom] >= 0) continue;
        for (size_t index = 0; index < operations_.size(); ++index) {
            const auto target = static_cast<size_t>(operations_[index].moved_to[atom]);
            if (representative_[target] >= 0) continue;
            representative_[target] = static_cast<int32_t>(atom);
            path_[target] = index;
        }
    }
}

std::vector<const SymmetryOperation*> SymmetryGroup::site_operations(int32_t atom) const {
    std::vector<const SymmetryOperation*> site;
    for (const SymmetryOperation& operation : operations_)
        if (operation.moved_to[static_cast<size_t>(atom)] == atom) site.push_back(&operation);
    return site;
}

std::vector<Displacement> displacements_for(const SymmetryGroup& group, double step, std::span<const Vec3> axes) {
    std::vector<Vec3> candidates;
    const std::vector<Vec3> simple = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
    for (const Vec3& axis : axes.empty() ? std::span<const Vec3>(simple) : axes)
        candidates.push_back(scaled_to(axis, 1));
    const size_t axis_count = candidates.size();
    for (size_t i = 0; i < axis_count; ++i)  // one general direction may do for three
        for (size_t j = i + 1; j < axis_count; ++j)
            for (double sign : {1.0, -1.0}) {
                Vec3 sum;
                for (size_t k = 0; k < 3; ++k) sum[k] = candidates[i][k] + sign * candidates[j][k];
                if (dot(sum, sum) > 0.1) candidates.push_back(scaled_to(sum, 1));
            }
    for (const Vec3& direction : simple) candidates.push_back(direction);
    if (group.operations().size() > 1) candidates.push_back(scaled_to({0.5, 0.3, 0.8}, 1));

    std::vector<Displacement> displacements;
    for (size_t atom = 0; atom < group.atom_count(); ++atom) {
        const auto index = static_cast<int32_t>(atom);
        if (group.representative(atom) != index) continue;
        for (const Vec3& direction : directions_for(group.site_operations(index), candidates))
            displacements.push_back({index, scaled_to(direction, step)});
    }
    return displacements;
}

std::optional<int32_t> undetermined_atom(const SymmetryGroup& group, std::span<const Displacement> displacements) {
    std::vector<Mat3> squares(group.atom_count(), Mat3{});
    for (const Displacement& given : displacements)
        for (const SymmetryOperation& operation : group.operations()) {
            const int32_t atom = operation.moved_to[static_cast<size_t>(given.atom)];
            const Vec3 vector = turned(operation.rotation, given.vector);
            add_outer_product(squares[static_cast<size_t>(atom)], vector, vector);
        }
    for (size_t atom = 0; atom < group.atom_count(); ++atom) {
        const auto index = static_cast<int32_t>(atom);
        if (group.representative(atom) == index && !are_three_directions(squares[atom])) return index;
    }
    return {};
}

std::vector<double> force_derivatives(const SymmetryGroup& group, std::span<const DisplacedForces> displaced,
                                      std::span<const int32_t> rows) {
    const size_t atom_count = group.atom_count();
    std::vector<double> result(rows.size() * atom_count * 9);
    std::vector<std::vector<Mat3>> of_representative(atom_count);  // [representative][atom]: dF/du
    const auto find_row = [&](int32_t atom) -> const std::vector<Mat3>& {
        std::vector<Mat3>& row = of_representative[static_cast<size_t>(atom)];
        if (!row.empty()) return row;
        // Least squares over what is given and its images: sum of F u^T times the inverse of sum of u u^T.
        std::vector<Mat3> products(atom_count, Mat3{});
        Mat3 squares{};
        for (const DisplacedForces& given : displaced)
            for (const SymmetryOperation& operation : group.operations()) {
                if (operation.moved_to[static_cast<size_t>(given.displacement.atom)] != atom) continue;
                const Vec3 vector = turned(operation.rotation, given.displacement.vector);
                add_outer_product(squares, vector, vector);
                for (size_t j = 0; j < atom_count; ++j) {
                    const double* force = &given.forces[3 * j];
                    add_outer_product(products[static_cast<size_t>(operation.moved_to[j])],
                                      turned(operation.rotation, {force[0], force[1], force[2]}), vector);
                }
            }
        if (!are_three_directions(squares))
            fail(Status::argument, "the displacements of atom ", atom, " do not span three directions");
        const Mat3 inverted = inverse(squares);
        row.resize(atom_count);
        for (size_t j = 0; j < atom_count; ++j) row[j] = product(products[j], inverted);
        return row;
    };
    for (size_t index = 0; index < rows.size(); ++index) {
        const auto atom = static_cast<size_t>(rows[index]);
        const std::vector<Mat3>& row = find_row(group.representative(atom));
        const SymmetryOperation& operation = group.from_representative(atom);
        for (size_t j = 0; j < atom_count; ++j) {
            const Mat3 block = product(product(operation.rotation, row[j]), transposed(operation.rotation));
            double* target = &result[(index * atom_count + static_cast<size_t>(operation.moved_to[j])) * 9];
            for (size_t a = 0; a < 3; ++a) std::copy(block[a].begin(), block[a].end(), target + 3 * a);
        }
    }
    return result;
}

}  // namespace mlff
