// SPDX-License-Identifier: MIT
#include "properties/normal_modes.h"

#include <algorithm>
#include <cmath>

#include "core/matrix3.h"
#include "properties/eigenvalues.h"
#include "properties/units.h"

namespace mlff {
namespace {

// 1/cm of the square of an angular frequency in eV/(angstrom^2 u).
double wavenumber(double square) {
    constexpr double kPerSecondSquared = kJoulePerElectronvolt * 1e20 / kKilogramPerU;
    const double frequency =
        std::sqrt(std::abs(square) * kPerSecondSquared) / (2 * std::numbers::pi * kLightCentimetrePerSecond);
    return square < 0 ? -frequency : frequency;
}

double dot(std::span<const double> a, std::span<const double> b) {
    double sum = 0;
    for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return sum;
}

// Translations and rotations in coordinates times the roots of the masses: of length 1, at right angles.
std::vector<std::vector<double>> rigid_motions(std::span<const double> masses, std::span<const double> positions,
                                               std::span<const Vec3> rotation_axes) {
    const size_t width = positions.size();
    Vec3 center{};
    double total = 0;
    for (size_t i = 0; i < masses.size(); ++i) {
        total += masses[i];
        for (size_t k = 0; k < 3; ++k) center[k] += masses[i] * positions[3 * i + k];
    }
    std::vector<std::vector<double>> found;
    const auto add = [&](std::vector<double> motion) {
        for (int pass = 0; pass < 2; ++pass)  // twice, so that rounding does not count
            for (const auto& other : found) {
                const double part = dot(motion, other);
                for (size_t i = 0; i < width; ++i) motion[i] -= part * other[i];
            }
        const double length = std::sqrt(dot(motion, motion));
        constexpr double kSome = 1e-8;  // angstrom: less is no motion, as the rotation of a chain about itself
        if (!(length > kSome * std::sqrt(total))) return;
        for (double& number : motion) number /= length;
        found.push_back(std::move(motion));
    };
    for (size_t axis = 0; axis < 3; ++axis) {
        std::vector<double> motion(width);
        for (size_t i = 0; i < masses.size(); ++i) motion[3 * i + axis] = std::sqrt(masses[i]);
        add(std::move(motion));
    }
    for (const Vec3& axis : rotation_axes) {
        std::vector<double> motion(width);
        for (size_t i = 0; i < masses.size(); ++i) {
            Vec3 place;
            for (size_t k = 0; k < 3; ++k) place[k] = positions[3 * i + k] - center[k] / total;
            const Vec3 turned = cross(axis, place);
            for (size_t k = 0; k < 3; ++k) motion[3 * i + k] = std::sqrt(masses[i]) * turned[k];
        }
        add(std::move(motion));
    }
    return found;
}

Vec3 unit(const Vec3& vector) {
    const double length = std::sqrt(dot(vector, vector));
    return {vector[0] / length, vector[1] / length, vector[2] / length};
}

// From the first atom to the one that is farthest from it.
Vec3 direction_of_line(const SystemView& molecule) {
    Vec3 farthest{};
    for (int64_t i = 1; i < molecule.atom_count; ++i) {
        Vec3 difference;
        for (size_t k = 0; k < 3; ++k)
            difference[k] = molecule.positions[3 * i + static_cast<int64_t>(k)] - molecule.positions[k];
        if (dot(difference, difference) > dot(farthest, farthest)) farthest = difference;
    }
    return unit(farthest);
}

}  // namespace

int NormalModes::imaginary_count() const {
    return static_cast<int>(std::count_if(frequencies.begin(), frequencies.end(), [](double f) { return f < 0; }));
}

double NormalModes::zero_point_energy() const {
    double sum = 0;
    for (const double frequency : frequencies)
        if (frequency > 0) sum += frequency * kElectronvoltPerWavenumber / 2;
    return sum;
}

std::vector<Vec3> free_rotation_axes(const SystemView& system, bool is_linear) {
    const auto periodic = std::count(system.periodic.begin(), system.periodic.end(), true);
    if (periodic > 1 || system.atom_count < 2) return {};
    if (periodic == 1) {
        const auto k = static_cast<size_t>(std::find(system.periodic.begin(), system.periodic.end(), true) -
                                           system.periodic.begin());
        return {unit(system.cell[k])};
    }
    if (!is_linear) return {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
    const Vec3 line = direction_of_line(system);
    const Vec3 first = unit(cross(line, std::abs(line[0]) < 0.5 ? Vec3{1, 0, 0} : Vec3{0, 1, 0}));
    return {first, cross(line, first)};
}

NormalModes normal_modes(std::span<const double> hessian, std::span<const double> masses,
                         std::span<const double> positions, std::span<const Vec3> rotation_axes) {
    const size_t width = positions.size();
    std::vector<double> weighted(width * width), roots(width);
    for (size_t i = 0; i < width; ++i) roots[i] = std::sqrt(masses[i / 3]);
    for (size_t i = 0; i < width; ++i)
        for (size_t j = 0; j < width; ++j) weighted[i * width + j] = hessian[i * width + j] / (roots[i] * roots[j]);
    double size = 0;
    for (const double number : weighted) size = std::max(size, std::abs(number));

    const auto rigid = rigid_motions(masses, positions, rotation_axes);
    const size_t rigid_count = rigid.size();
    // (1 - D D^T) H (1 - D D^T) + shift D D^T: rigid motions get the highest frequencies, which are then left out.
    const double shift = 10 * static_cast<double>(width) * std::max(size, 1e-30);
    std::vector<std::vector<double>> images(rigid_count, std::vector<double>(width));  // H D
    std::vector<double> rigid_part(rigid_count * rigid_count);                         // D^T H D
    for (size_t k = 0; k < rigid_count; ++k)
        for (size_t i = 0; i < width; ++i) images[k][i] = dot(std::span(weighted).subspan(i * width, width), rigid[k]);
    for (size_t k = 0; k < rigid_count; ++k)
        for (size_t l = 0; l < rigid_count; ++l) rigid_part[k * rigid_count + l] = dot(rigid[k], images[l]);
    for (size_t i = 0; i < width; ++i)
        for (size_t j = 0; j < width; ++j) {
            double& number = weighted[i * width + j];
            for (size_t k = 0; k < rigid_count; ++k) {
                number -= rigid[k][i] * images[k][j] + images[k][i] * rigid[k][j];
                for (size_t l = 0; l < rigid_count; ++l)
                    number += rigid[k][i] * rigid_part[k * rigid_count + l] * rigid[l][j];
                number += shift * rigid[k][i] * rigid[k][j];
            }
        }

    NormalModes modes;
    for (const double square : eigenvectors_of_symmetric(rigid_part, rigid_count).values)
        modes.rigid_frequencies.push_back(wavenumber(square));
    const auto found = eigenvectors_of_symmetric(weighted, width);
    for (size_t mode = 0; mode + rigid_count < width; ++mode) {
        std::vector<double> motion(width);
        for (size_t i = 0; i < width; ++i) motion[i] = found.vectors[mode * width + i] / roots[i];
        const double square = dot(motion, motion), length = std::sqrt(square);
        modes.frequencies.push_back(wavenumber(found.values[mode]));
        modes.reduced_masses.push_back(1 / square);
        for (const double number : motion) modes.displacements.push_back(number / length);
    }
    return modes;
}

}  // namespace mlff
