// SPDX-License-Identifier: MIT
#include "gpu/engine/placement.h"

#include <algorithm>
#include <cmath>

namespace mlff::gpu {
namespace {

constexpr double kLargestExtent = 1000;  // angstrom

struct Extent {
    Vec3 low{}, size{};
};
Extent extent_of(const SystemView& system) {
    if (system.atom_count == 0) return {};
    Vec3 low, high;
    for (size_t k = 0; k < 3; ++k) low[k] = high[k] = system.positions[k];
    for (int64_t atom = 1; atom < system.atom_count; ++atom)
        for (size_t k = 0; k < 3; ++k) {
            const double x = system.positions[3 * atom + static_cast<int64_t>(k)];
            low[k] = std::min(low[k], x);
            high[k] = std::max(high[k], x);
        }
    return {low, {high[0] - low[0], high[1] - low[1], high[2] - low[2]}};
}

}  // namespace

bool Placement::is_possible(std::span<const SystemView> systems) {
    return std::all_of(systems.begin(), systems.end(), [](const SystemView& system) {
        const Vec3 size = extent_of(system).size;
        return !system.is_periodic() && std::max({size[0], size[1], size[2]}) <= kLargestExtent;
    });
}

void Placement::choose(std::span<const SystemView> systems, double reach) {
    atom_counts_.clear();
    shifts_.clear();
    Vec3 spacing{};
    std::vector<Vec3> lows;
    for (const SystemView& system : systems) {
        const Extent extent = extent_of(system);
        for (size_t k = 0; k < 3; ++k) spacing[k] = std::max(spacing[k], extent.size[k] + 2 * reach);
        lows.push_back(extent.low);
        atom_counts_.push_back(system.atom_count);
    }
    const auto side = static_cast<size_t>(std::ceil(std::cbrt(static_cast<double>(systems.size()))));
    for (size_t i = 0; i < systems.size(); ++i) {
        const size_t place[3] = {i / (side * side), i / side % side, i % side};
        Vec3 shift;
        for (size_t k = 0; k < 3; ++k) shift[k] = static_cast<double>(place[k]) * spacing[k] - lows[i][k];
        shifts_.push_back(shift);
    }
}

bool Placement::holds(std::span<const SystemView> systems) const {
    return std::equal(systems.begin(), systems.end(), atom_counts_.begin(), atom_counts_.end(),
                      [](const SystemView& system, int64_t count) { return system.atom_count == count; });
}

void Placement::place(std::span<const SystemView> systems, double* positions) const {
    for (size_t i = 0; i < systems.size(); ++i)
        for (int64_t atom = 0; atom < systems[i].atom_count; ++atom)
            for (size_t k = 0; k < 3; ++k)
                *positions++ = systems[i].positions[3 * atom + static_cast<int64_t>(k)] + shifts_[i][k];
}

}  // namespace mlff::gpu
