// SPDX-License-Identifier: MIT
#include "properties/phonons/mesh.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/error.h"
#include "dynamics/units.h"

namespace mlff::phonons {
namespace {

constexpr double kPlanckOfTHz = 4.135667696923859e-3;  // eV

// Whether every point of the mesh becomes one of the mesh.
bool keeps_mesh(const IntegerMatrix& rotation, const std::array<int64_t, 3>& counts) {
    for (size_t i = 0; i < 3; ++i)
        for (size_t j = 0; j < 3; ++j)
            if (rotation[i][j] * counts[j] % counts[i] != 0) return false;
    return true;
}

}  // namespace

std::vector<MeshPoint> mesh_points(const std::array<int64_t, 3>& counts,
                                   std::span<const FractionalOperation> operations) {
    constexpr int64_t kMostPoints = 10'000'000;
    int64_t total = 1;
    for (const int64_t count : counts) {
        if (count < 1) fail(Status::argument, "the mesh has ", count, " points along a vector, expected 1 or more");
        if (count > kMostPoints / total)
            fail(Status::argument, "the mesh is too fine, expected at most ", kMostPoints, " points");
        total *= count;
    }
    // A rotation W of positions in lattice vectors takes wave vectors q, in reciprocal ones, to W^T q.
    std::vector<IntegerMatrix> rotations;
    for (const FractionalOperation& operation : operations)
        if (keeps_mesh(operation.rotation, counts)) rotations.push_back(operation.rotation);
    std::vector<bool> is_seen(static_cast<size_t>(total));
    std::vector<MeshPoint> points;
    const auto visit = [&](const Integer3& address) {
        Integer3 folded = address;
        for (size_t i = 0; i < 3; ++i) folded[i] = (folded[i] % counts[i] + counts[i]) % counts[i];
        const auto index = static_cast<size_t>((folded[2] * counts[1] + folded[1]) * counts[0] + folded[0]);
        if (is_seen[index]) return;
        is_seen[index] = true;
        points.back().weight += 1 / static_cast<double>(total);
    };
    for (int64_t index = 0; index < total; ++index) {
        if (is_seen[static_cast<size_t>(index)]) continue;
        const Integer3 address = {index % counts[0], index / counts[0] % counts[1], index / (counts[0] * counts[1])};
        MeshPoint point;
        for (size_t i = 0; i < 3; ++i) {
            point.wave_vector[i] = static_cast<double>(address[i]) / static_cast<double>(counts[i]);
            if (2 * address[i] > counts[i]) point.wave_vector[i] -= 1;
        }
        points.push_back(point);
        visit(address);
        visit({-address[0], -address[1], -address[2]});
        for (const IntegerMatrix& rotation : rotations) {
            Integer3 turned{};
            for (size_t j = 0; j < 3; ++j)
                for (size_t i = 0; i < 3; ++i) turned[j] += rotation[i][j] * counts[j] / counts[i] * address[i];
            visit(turned);
            visit({-turned[0], -turned[1], -turned[2]});
        }
    }
    return points;
}

std::array<int64_t, 3> default_mesh(const Mat3& lattice) {
    constexpr double kSpacing = 0.1;  // 1/angstrom
    const Mat3 reciprocal = transposed(inverse(lattice));
    std::array<int64_t, 3> counts{};
    for (size_t k = 0; k < 3; ++k) {
        const double length = 2 * std::numbers::pi * std::hypot(reciprocal[k][0], reciprocal[k][1], reciprocal[k][2]);
        counts[k] = std::max<int64_t>(1, std::llround(std::ceil(length / kSpacing - 1e-6)));
    }
    return counts;
}

int64_t imaginary_count(const std::vector<std::vector<double>>& frequencies) {
    int64_t count = 0;
    for (const std::vector<double>& modes : frequencies)
        count += std::count_if(modes.begin(), modes.end(), [](double value) { return value < -kZeroFrequency; });
    return count;
}

StateDensity state_density(const MeshModes& modes, size_t point_count) {
    double low = INFINITY, high = -INFINITY;
    for (const std::vector<double>& frequencies : modes.frequencies)
        for (const double frequency : frequencies) low = std::min(low, frequency), high = std::max(high, frequency);
    StateDensity density;
    density.width = std::max((high - low) / 100, 1e-3);
    constexpr double kMargin = 5;  // widths
    const double begin = low - kMargin * density.width,
                 step = (high - low + 2 * kMargin * density.width) / static_cast<double>(point_count - 1);
    density.states.resize(point_count);
    for (size_t k = 0; k < point_count; ++k) density.frequencies.push_back(begin + step * static_cast<double>(k));
    const double height = 1 / (density.width * std::sqrt(2 * std::numbers::pi));
    for (size_t point = 0; point < modes.points.size(); ++point)
        for (const double frequency : modes.frequencies[point]) {
            constexpr double kReach = 8;  // widths; beyond, a Gaussian is below 1e-14 of its height
            const double first = std::ceil((frequency - kReach * density.width - begin) / step);
            for (auto k = static_cast<size_t>(std::max(first, 0.0)); k < point_count; ++k) {
                const double part = (density.frequencies[k] - frequency) / density.width;
                if (part > kReach) break;
                density.states[k] += modes.points[point].weight * height * std::exp(-0.5 * part * part);
            }
        }
    return density;
}

double zero_point_energy(const MeshModes& modes) { return thermal_point(modes, 0).free_energy; }

ThermalPoint thermal_point(const MeshModes& modes, double temperature) {
    ThermalPoint result;
    result.temperature = temperature;
    for (size_t point = 0; point < modes.points.size(); ++point)
        for (const double frequency : modes.frequencies[point]) {
            if (!(frequency > kZeroFrequency)) continue;
            const double weight = modes.points[point].weight, quantum = kPlanckOfTHz * frequency;
            result.free_energy += weight * quantum / 2;
            if (!(temperature > 0)) continue;
            const double x = quantum / (kBoltzmann * temperature);  // where exp(x) overflows, nothing is added
            result.free_energy += weight * kBoltzmann * temperature * std::log1p(-std::exp(-x));
            result.entropy += weight * kBoltzmann * (x / std::expm1(x) - std::log1p(-std::exp(-x)));
            const double half = x / 2 / std::sinh(x / 2);
            result.heat_capacity += weight * kBoltzmann * half * half;
        }
    return result;
}

}  // namespace mlff::phonons
