// SPDX-License-Identifier: MIT
#include "properties/phonons/dynamical_matrix.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "dynamics/units.h"
#include "properties/eigenvalues.h"

namespace mlff::phonons {
namespace {

constexpr double kSameLength = 1e-5;  // angstrom, as in phonopy

double length_squared(const Vec3& a) { return a[0] * a[0] + a[1] * a[1] + a[2] * a[2]; }

// Other vectors of the same lattice, short and nearly at right angles: no vector gets shorter by adding another one or
// the sum or difference of the other two.
Mat3 reduced_lattice(Mat3 lattice) {
    constexpr int kMostRounds = 1000;
    for (int round = 0; round < kMostRounds; ++round) {
        bool is_changed = false;
        for (size_t k = 0; k < 3; ++k) {
            const Vec3 &a = lattice[(k + 1) % 3], &b = lattice[(k + 2) % 3];
            for (int m = -1; m <= 1; ++m)
                for (int n = -1; n <= 1; ++n) {
                    Vec3 other = lattice[k];
                    for (size_t i = 0; i < 3; ++i) other[i] += m * a[i] + n * b[i];
                    if (length_squared(other) < (1 - 1e-9) * length_squared(lattice[k]))
                        lattice[k] = other, is_changed = true;
                }
        }
        if (!is_changed) break;
    }
    return lattice;
}

// All vectors that differ from `vector` by a lattice vector and are no longer than the shortest of them.
std::vector<Vec3> shortest_images(const Mat3& reduced, const Vec3& vector) {
    Vec3 offset = to_fractional(reduced, vector);
    for (double& part : offset) part -= std::round(part);
    std::vector<Vec3> images;
    double shortest = INFINITY;
    constexpr int kReach = 2;
    for (int a = -kReach; a <= kReach; ++a)
        for (int b = -kReach; b <= kReach; ++b)
            for (int c = -kReach; c <= kReach; ++c) {
                images.push_back(to_cartesian(reduced, {offset[0] + a, offset[1] + b, offset[2] + c}));
                shortest = std::min(shortest, std::sqrt(length_squared(images.back())));
            }
    std::erase_if(images, [&](const Vec3& image) { return std::sqrt(length_squared(image)) > shortest + kSameLength; });
    return images;
}

}  // namespace

DynamicalMatrix::DynamicalMatrix(const Crystal& primitive, const Crystal& supercell, const CellMap& map,
                                 const ForceConstants& constants)
    : masses_(primitive.masses) {
    const Mat3 reduced = reduced_lattice(supercell.lattice), to_primitive = inverse(primitive.lattice);
    for (size_t row = 0; row < map.primitive_count(); ++row) {
        const Vec3 from = supercell.position(static_cast<size_t>(map.home_atoms()[row]));
        for (size_t atom = 0; atom < map.atom_count(); ++atom) {
            const Vec3 to = supercell.position(atom);
            Term term;
            term.row = row;
            term.column = map.primitive_atom(atom);
            term.first_image = images_.size();
            for (const Vec3& image : shortest_images(reduced, {to[0] - from[0], to[1] - from[1], to[2] - from[2]}))
                images_.push_back(to_cartesian(to_primitive, image));
            term.image_count = images_.size() - term.first_image;
            const double* block = &constants.blocks[9 * (row * map.atom_count() + atom)];
            const double scale =
                1 / (static_cast<double>(term.image_count) * std::sqrt(masses_[term.row] * masses_[term.column]));
            for (size_t k = 0; k < 9; ++k) term.block[k] = scale * block[k];
            terms_.push_back(term);
        }
    }
}

std::vector<std::complex<double>> DynamicalMatrix::at(const Vec3& wave_vector) const {
    const size_t size = mode_count();
    std::vector<std::complex<double>> sums(size * size);
    for (const Term& term : terms_) {
        std::complex<double> phase = 0;
        for (size_t k = 0; k < term.image_count; ++k) {
            const Vec3& image = images_[term.first_image + k];
            phase += std::polar(
                1.0, 2 * std::numbers::pi *
                         (wave_vector[0] * image[0] + wave_vector[1] * image[1] + wave_vector[2] * image[2]));
        }
        for (size_t i = 0; i < 3; ++i)
            for (size_t j = 0; j < 3; ++j)
                sums[(3 * term.row + i) * size + 3 * term.column + j] += phase * term.block[3 * i + j];
    }
    std::vector<std::complex<double>> matrix(sums.size());  // Hermitian up to rounding; now exactly
    for (size_t i = 0; i < size; ++i)
        for (size_t j = 0; j < size; ++j)
            matrix[i * size + j] = 0.5 * (sums[i * size + j] + std::conj(sums[j * size + i]));
    return matrix;
}

std::vector<double> DynamicalMatrix::frequencies(const Vec3& wave_vector) const {
    // 1 eV/(angstrom^2 u) is this many 1/fs^2; 1/fs is 1000 THz.
    const double unit = 1000 * std::sqrt(kAccelerationUnit) / (2 * std::numbers::pi);
    std::vector<double> values = eigenvectors_of_hermitian(at(wave_vector), mode_count()).values;
    for (double& value : values) value = std::copysign(unit * std::sqrt(std::abs(value)), value);
    return values;
}

std::vector<std::vector<double>> frequencies_at(const DynamicalMatrix& matrix, std::span<const Vec3> wave_vectors,
                                                ThreadTeam& team) {
    std::vector<std::vector<double>> result(wave_vectors.size());
    team.run(static_cast<int64_t>(result.size()), [&](int64_t index, int) {
        result[static_cast<size_t>(index)] = matrix.frequencies(wave_vectors[static_cast<size_t>(index)]);
    });
    return result;
}

}  // namespace mlff::phonons
