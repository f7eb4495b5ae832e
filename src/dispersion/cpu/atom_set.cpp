// SPDX-License-Identifier: MIT
#include "dispersion/cpu/atom_set.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "neighbors/cell_grid.h"
#include "neighbors/lattice.h"

namespace mlff::dispersion::cpu {
namespace {

constexpr double kMostAtoms = 5e7;  // with images

// The box along x, y and z that has all own atoms.
struct Box {
    Vec3 low{}, high{};

    explicit Box(const std::vector<double>& positions) {
        for (size_t axis = 0; axis < 3; ++axis) low[axis] = high[axis] = positions[axis];
        for (size_t i = 0; i < positions.size(); ++i) {
            low[i % 3] = std::min(low[i % 3], positions[i]);
            high[i % 3] = std::max(high[i % 3], positions[i]);
        }
    }
    double square_to(const Vec3& x) const {
        double square = 0;
        for (size_t axis = 0; axis < 3; ++axis) {
            const double away = std::max({low[axis] - x[axis], x[axis] - high[axis], 0.0});
            square += away * away;
        }
        return square;
    }
};

// Whole numbers of lattice vectors.
struct ShiftRange {
    int low = 0, high = 0;
};

}  // namespace

void place_domain(const SystemView& system, int64_t owned_count, const std::vector<int32_t>& slot_of, AtomSet& atoms) {
    refuse_far_atoms(system);
    atoms.owned_count = owned_count;
    atoms.positions.assign(system.positions, system.positions + 3 * system.atom_count);
    atoms.slots.clear();
    for (int64_t i = 0; i < system.atom_count; ++i)
        atoms.slots.push_back(slot_of[static_cast<size_t>(system.atomic_numbers[i])]);
    atoms.image_of.clear();
}

void place_system(const SystemView& system, const std::vector<int32_t>& slot_of, double range, AtomSet& atoms) {
    place_domain(system, system.atom_count, slot_of, atoms);
    if (!system.is_periodic() || system.atom_count == 0) return;
    const Lattice lattice = make_lattice(system);
    const auto count = static_cast<size_t>(system.atom_count);
    std::vector<Vec3>& fractions = atoms.fractions;
    fractions.resize(count);
    Vec3 low{1, 1, 1}, high{0, 0, 0};
    for (size_t i = 0; i < count; ++i) {
        double* x = &atoms.positions[3 * i];
        const Vec3 position = {x[0], x[1], x[2]};
        for (size_t k = 0; k < 3; ++k) {
            if (!lattice.periodic[k]) continue;
            double f = 0;
            for (size_t a = 0; a < 3; ++a) f += position[a] * lattice.inverse[a][k];
            const double cells = std::floor(f);
            for (size_t a = 0; a < 3; ++a) x[a] -= cells * lattice.vectors[k][a];
            fractions[i][k] = f - cells;
            low[k] = std::min(low[k], fractions[i][k]);
            high[k] = std::max(high[k], fractions[i][k]);
        }
    }
    Vec3 margin{};
    double expected = static_cast<double>(count);
    for (size_t k = 0; k < 3; ++k) {
        margin[k] = range / lattice.height[k] + 1e-9;
        if (lattice.periodic[k]) expected *= 1 + 2 * margin[k];
    }
    if (expected > kMostAtoms)
        fail(Status::system, "about ", expected,
             " atoms and images would be within the reach of the dispersion, the limit is ", kMostAtoms);
    const Box box(atoms.positions);
    const double most_square = range * range * (1 + 1e-9);
    for (size_t i = 0; i < count; ++i) {
        ShiftRange shifts[3];
        for (size_t k = 0; k < 3; ++k)
            if (lattice.periodic[k])
                shifts[k] = {static_cast<int>(std::ceil(low[k] - margin[k] - fractions[i][k])),
                             static_cast<int>(std::floor(high[k] + margin[k] - fractions[i][k]))};
        for (int a = shifts[0].low; a <= shifts[0].high; ++a)
            for (int b = shifts[1].low; b <= shifts[1].high; ++b)
                for (int c = shifts[2].low; c <= shifts[2].high; ++c) {
                    if (a == 0 && b == 0 && c == 0) continue;
                    Vec3 image;
                    for (size_t axis = 0; axis < 3; ++axis)
                        image[axis] = atoms.positions[3 * i + axis] + a * lattice.vectors[0][axis] +
                                      b * lattice.vectors[1][axis] + c * lattice.vectors[2][axis];
                    if (box.square_to(image) > most_square) continue;
                    atoms.positions.insert(atoms.positions.end(), image.begin(), image.end());
                    atoms.slots.push_back(atoms.slots[i]);
                    atoms.image_of.push_back(static_cast<int32_t>(i));
                }
    }
}

}  // namespace mlff::dispersion::cpu
