// SPDX-License-Identifier: MIT
#include "properties/phonons/force_constants.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace mlff::phonons {
namespace {

size_t block_at(const CellMap& map, size_t primitive_atom, size_t atom) {
    return 9 * (primitive_atom * map.atom_count() + atom);
}

void make_symmetric(std::vector<double>& blocks, const CellMap& map, double& violation) {
    std::vector<double> result(blocks.size());
    for (size_t row = 0; row < map.primitive_count(); ++row)
        for (size_t atom = 0; atom < map.atom_count(); ++atom) {
            // The same pair seen from the other atom, moved into cell 0.
            const Integer3& cell = map.cell(atom);
            const size_t here = block_at(map, row, atom),
                         there =
                             block_at(map, map.primitive_atom(atom), map.atom_at(row, {-cell[0], -cell[1], -cell[2]}));
            for (size_t i = 0; i < 3; ++i)
                for (size_t j = 0; j < 3; ++j) {
                    const double a = blocks[here + 3 * i + j], b = blocks[there + 3 * j + i];
                    violation = std::max(violation, std::abs(a - b));
                    result[here + 3 * i + j] = 0.5 * (a + b);
                }
        }
    blocks = std::move(result);
}

// The sums over rows and, by index symmetry, over columns become zero: P C P with P = 1 - (1/N) (all ones). This is the
// nearest matrix with that property, it stays symmetric, and no pair is preferred.
void remove_drift(std::vector<double>& blocks, const CellMap& map) {
    const auto atom_count = static_cast<double>(map.atom_count());
    std::vector<Mat3> sums(map.primitive_count(), Mat3{});
    Mat3 total{};
    for (size_t row = 0; row < map.primitive_count(); ++row)
        for (size_t atom = 0; atom < map.atom_count(); ++atom)
            for (size_t k = 0; k < 9; ++k) sums[row][k / 3][k % 3] += blocks[block_at(map, row, atom) + k];
    for (const Mat3& sum : sums)
        for (size_t k = 0; k < 9; ++k) total[k / 3][k % 3] += sum[k / 3][k % 3] * static_cast<double>(map.cell_count());
    for (size_t row = 0; row < map.primitive_count(); ++row)
        for (size_t atom = 0; atom < map.atom_count(); ++atom) {
            const Mat3& column = sums[map.primitive_atom(atom)];
            for (size_t i = 0; i < 3; ++i)
                for (size_t j = 0; j < 3; ++j)
                    blocks[block_at(map, row, atom) + 3 * i + j] +=
                        (total[i][j] / atom_count - sums[row][i][j] - column[j][i]) / atom_count;
        }
}

}  // namespace

ForceConstants force_constants_from(const SymmetryGroup& group, const CellMap& map,
                                    std::span<const DisplacedForces> displaced) {
    const std::vector<double> derivatives = force_derivatives(group, displaced, map.home_atoms());
    ForceConstants result;
    result.blocks.resize(derivatives.size());
    for (size_t block = 0; block < derivatives.size(); block += 9)
        for (size_t i = 0; i < 3; ++i)
            for (size_t j = 0; j < 3; ++j) result.blocks[block + 3 * i + j] = -derivatives[block + 3 * j + i];
    if (std::any_of(result.blocks.begin(), result.blocks.end(), [](double value) { return !std::isfinite(value); }))
        fail(Status::system, "a force constant is not finite");
    std::vector<double> column_sums(9 * map.primitive_count());
    for (size_t row = 0; row < map.primitive_count(); ++row) {
        double sums[9] = {};
        for (size_t atom = 0; atom < map.atom_count(); ++atom)
            for (size_t k = 0; k < 9; ++k) {
                const double value = result.blocks[block_at(map, row, atom) + k];
                sums[k] += value;
                column_sums[9 * map.primitive_atom(atom) + k] += value;
            }
        for (const double sum : sums) result.acoustic_violation = std::max(result.acoustic_violation, std::abs(sum));
    }
    for (const double sum : column_sums) result.acoustic_violation = std::max(result.acoustic_violation, std::abs(sum));
    make_symmetric(result.blocks, map, result.index_violation);
    remove_drift(result.blocks, map);
    return result;
}

}  // namespace mlff::phonons
