// SPDX-License-Identifier: MIT
#include "properties/normal_modes.h"

#include <algorithm>
#include <cmath>

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

// Translations and rotations in coordinates times the roots of the masses: of length 1, at right angles. Atoms on a
// line have one rotation less.
std::vector<std::vector<double>> rigid_motions(std::span<const double> masses, std::span<const double> positions,
                                               RigidMotions motions) {
    const size_t width = positions.size();
    double center[3] = {}, total = 0;
    for (size_t i = 0; i < masses.size(); ++i) {
        total += masses[i];
        for (size_t k = 0; k < 3; ++k) center[k] += masses[i] * positions[3 * i + k];
    }
    std::vector<std::vector<double>> found;
    const auto add = [&](std::vector<double> motion) {
        const double length_before = std::sqrt(dot(motion, motion));
        for (int pass = 0; pass < 2; ++pass)  // twice, so that rounding does not count
            for (const auto& other : found) {
                const double part = dot(motion, other);
                for (size_t i = 0; i < width; ++i) motion[i] -= part * other[i];
            }
        const double length = std::sqrt(dot(motion, motion));
        constexpr double kNew = 1e-4;
        if (!(length > kNew * std::max(length_before, std::sqrt(total)))) return;
        for (double& number : motion) number /= length;
        found.push_back(std::move(motion));
    };
    for (size_t axis = 0; axis < 3; ++axis) {
        std::vector<double> motion(width);
        for (size_t i = 0; i < masses.size(); ++i) motion[3 * i + axis] = std::sqrt(masses[i]);
        add(std::move(motion));
    }
    if (motions == RigidMotions::translations) return found;
    for (size_t axis = 0; axis < 3; ++axis) {
        const size_t u = (axis + 1) % 3, v = (axis + 2) % 3;
        std::vector<double> motion(width);
        for (size_t i = 0; i < masses.size(); ++i) {
            const double root = std::sqrt(masses[i]);
            motion[3 * i + u] = -root * (positions[3 * i + v] - center[v] / total);
            motion[3 * i + v] = root * (positions[3 * i + u] - center[u] / total);
        }
        add(std::move(motion));
    }
    return found;
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

NormalModes normal_modes(std::span<const double> hessian, std::span<const double> masses,
                         std::span<const double> positions, RigidMotions motions) {
    const size_t width = positions.size();
    std::vector<double> weighted(width * width), roots(width);
    for (size_t i = 0; i < width; ++i) roots[i] = std::sqrt(masses[i / 3]);
    for (size_t i = 0; i < width; ++i)
        for (size_t j = 0; j < width; ++j) weighted[i * width + j] = hessian[i * width + j] / (roots[i] * roots[j]);
    double size = 0;
    for (const double number : weighted) size = std::max(size, std::abs(number));

    const auto rigid = rigid_motions(masses, positions, motions);
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
