// SPDX-License-Identifier: MIT
#include "symmetry/point_group.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

namespace mlff {
namespace {

double length(const Vec3& a) { return std::sqrt(dot(a, a)); }
Vec3 difference(const Vec3& a, const Vec3& b) { return {a[0] - b[0], a[1] - b[1], a[2] - b[2]}; }
Vec3 unit(const Vec3& a) {
    const double size = length(a);
    return {a[0] / size, a[1] / size, a[2] / size};
}

// Three unit vectors at right angles, in rows: along a, in the plane of a and b, and out of it.
Mat3 frame_of(const Vec3& a, const Vec3& b) {
    const Vec3 first = unit(a), third = unit(cross(a, b));
    return {first, cross(third, first), third};
}

class Search {
public:
    Search(const SystemView& molecule, double tolerance, std::span<const double> masses)
        : molecule_(molecule), tolerance_(tolerance), masses_(masses) {
        const auto count = static_cast<size_t>(molecule.atom_count);
        Vec3 center{};
        for (size_t i = 0; i < 3 * count; ++i)
            center[i % 3] += molecule.positions[i] / static_cast<double>(std::max<size_t>(count, 1));
        for (size_t i = 0; i < count; ++i) {
            const double* position = molecule.positions + 3 * i;
            places_.push_back(difference({position[0], position[1], position[2]}, center));
        }
        find_kinds();
    }

    PointGroup find() {
        PointGroup group;
        if (places_.size() >= 2 && choose_pair()) {
            try_all_pairs(group.operations);
        } else if (first_) {
            group.is_linear = true;
            try_line(group.operations);
        }
        if (group.operations.empty() || !is_closed(group.operations)) group.operations = {identity()};
        int rotations = 0, reversals = 0;
        for (const SymmetryOperation& operation : group.operations) {
            rotations += determinant(operation.rotation) > 0;
            if (first_) {
                const Vec3& along = places_[*first_];
                Vec3 image = along;
                transform_vectors(operation.rotation, image.data(), 1);
                reversals += dot(image, along) < 0;
            }
        }
        group.symmetry_number = group.is_linear ? (reversals > 0 ? 2 : 1) : rotations;
        return group;
    }

private:
    SymmetryOperation identity() const {
        SymmetryOperation result;
        result.moved_to.resize(places_.size());
        std::iota(result.moved_to.begin(), result.moved_to.end(), 0);
        return result;
    }

    bool is_same_kind(size_t a, size_t b) const {
        return molecule_.atomic_numbers[a] == molecule_.atomic_numbers[b] &&
               (masses_.empty() || masses_[a] == masses_[b]) &&
               std::abs(length(places_[a]) - length(places_[b])) <= tolerance_;
    }

    void find_kinds() {
        kinds_.resize(places_.size());
        for (size_t a = 0; a < places_.size(); ++a)
            for (size_t b = 0; b < places_.size(); ++b)
                if (is_same_kind(a, b)) kinds_[a].push_back(b);
    }

    bool is_off_center(size_t atom) const { return length(places_[atom]) > std::max(10 * tolerance_, 1e-3); }

    // Two atoms whose images fix an operation, from small kinds, so that few images are possible. False on a line.
    bool choose_pair() {
        const auto better = [&](size_t atom, const std::optional<size_t>& best) {
            return !best || kinds_[atom].size() < kinds_[*best].size();
        };
        for (size_t atom = 0; atom < places_.size(); ++atom)
            if (is_off_center(atom) && better(atom, first_)) first_ = atom;
        if (!first_) return false;
        constexpr double kLeastSine = 1e-3;
        std::optional<size_t> second;
        for (size_t atom = 0; atom < places_.size(); ++atom) {
            const double area = length(cross(places_[*first_], places_[atom]));
            if (is_off_center(atom) && area > kLeastSine * length(places_[*first_]) * length(places_[atom]) &&
                better(atom, second))
                second = atom;
        }
        if (second) second_ = *second;
        return second.has_value();
    }

    void try_all_pairs(std::vector<SymmetryOperation>& operations) const {
        const Vec3 &a = places_[*first_], &b = places_[second_];
        const Mat3 from = frame_of(a, b);
        const double distance = length(difference(a, b));
        for (const size_t image_a : kinds_[*first_])
            for (const size_t image_b : kinds_[second_]) {
                if (std::abs(length(difference(places_[image_a], places_[image_b])) - distance) > 2 * tolerance_)
                    continue;
                Mat3 to = frame_of(places_[image_a], places_[image_b]);
                for (int turn = 0; turn < 2; ++turn) {
                    try_rotation(product(transposed(to), from), operations);
                    for (double& number : to[2]) number = -number;  // the same and a reflection
                }
            }
    }

    // Of the rotations about a line, those by quarters are enough to make its directions equal.
    void try_line(std::vector<SymmetryOperation>& operations) const {
        const Vec3 axis = unit(places_[*first_]);
        const Vec3 other = std::abs(axis[0]) < 0.5 ? Vec3{1, 0, 0} : Vec3{0, 1, 0};
        const Mat3 from = frame_of(axis, other);
        for (double along : {1.0, -1.0})
            for (double u : {1.0, -1.0})
                for (double v : {1.0, -1.0})
                    for (bool is_swapped : {false, true}) {
                        Mat3 to{};
                        for (size_t k = 0; k < 3; ++k) {
                            to[0][k] = along * from[0][k];
                            to[1][k] = u * from[is_swapped ? 2 : 1][k];
                            to[2][k] = v * from[is_swapped ? 1 : 2][k];
                        }
                        try_rotation(product(transposed(to), from), operations);
                    }
    }

    void try_rotation(const Mat3& rotation, std::vector<SymmetryOperation>& operations) const {
        SymmetryOperation operation;
        operation.rotation = rotation;
        std::vector<bool> is_taken(places_.size());
        for (size_t atom = 0; atom < places_.size(); ++atom) {
            Vec3 image = places_[atom];
            transform_vectors(rotation, image.data(), 1);
            const auto found = std::find_if(kinds_[atom].begin(), kinds_[atom].end(), [&](size_t candidate) {
                return !is_taken[candidate] && length(difference(image, places_[candidate])) <= tolerance_;
            });
            if (found == kinds_[atom].end()) return;
            is_taken[*found] = true;
            operation.moved_to.push_back(static_cast<int32_t>(*found));
        }
        operations.push_back(std::move(operation));
    }

    // With a tolerance, what was found need not be a group.
    bool is_closed(const std::vector<SymmetryOperation>& operations) const {
        constexpr double kSame = 0.05;
        const auto is_found = [&](const Mat3& wanted) {
            return std::any_of(operations.begin(), operations.end(), [&](const SymmetryOperation& operation) {
                double largest = 0;
                for (size_t i = 0; i < 3; ++i)
                    for (size_t j = 0; j < 3; ++j)
                        largest = std::max(largest, std::abs(operation.rotation[i][j] - wanted[i][j]));
                return largest < kSame;
            });
        };
        for (const SymmetryOperation& a : operations)
            for (const SymmetryOperation& b : operations)
                if (!is_found(product(a.rotation, b.rotation))) return false;
        return true;
    }

    const SystemView& molecule_;
    double tolerance_;
    std::span<const double> masses_;
    std::vector<Vec3> places_;                // [atom], from the centre
    std::vector<std::vector<size_t>> kinds_;  // [atom]: atoms that it could be taken to
    std::optional<size_t> first_;
    size_t second_ = 0;
};

}  // namespace

PointGroup find_point_group(const SystemView& molecule, double tolerance, std::span<const double> masses) {
    return Search(molecule, tolerance, masses).find();
}

}  // namespace mlff
