// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <cmath>
#include <random>
#include <vector>

#include "gpu/engine/placement.h"

using namespace mlff;
using gpu::Placement;

namespace {

using Numbers = std::vector<double>;

std::vector<SystemView> views_of(const std::vector<Numbers>& positions) {
    std::vector<SystemView> views(positions.size());
    for (size_t i = 0; i < positions.size(); ++i) {
        views[i].atom_count = static_cast<int64_t>(positions[i].size() / 3);
        views[i].positions = positions[i].data();
    }
    return views;
}
double distance(const double* a, const double* b) {
    return std::sqrt(std::pow(a[0] - b[0], 2) + std::pow(a[1] - b[1], 2) + std::pow(a[2] - b[2], 2));
}

}  // namespace

TEST_CASE("systems that are placed side by side keep their distances, and are no neighbours of each other") {
    std::mt19937 random(1);
    std::vector<Numbers> positions;
    for (size_t i = 0; i < 30; ++i) {
        std::uniform_real_distribution<double> place(-50.0 * static_cast<double>(i % 3),
                                                     3.0 + static_cast<double>(i % 7));
        positions.emplace_back(3 * (i % 5));  // some are empty
        for (double& x : positions.back()) x = place(random);
    }
    std::vector<SystemView> views = views_of(positions);
    REQUIRE(Placement::is_possible(views));
    Placement placement;
    CHECK(!placement.holds(views));
    constexpr double kReach = 6;
    placement.choose(views, kReach);
    CHECK(placement.holds(views));
    Numbers placed(3 * 60, NAN);
    placement.place(views, placed.data());
    std::vector<size_t> system_of;
    Numbers before;
    for (size_t i = 0; i < positions.size(); ++i) {
        system_of.insert(system_of.end(), positions[i].size() / 3, i);
        before.insert(before.end(), positions[i].begin(), positions[i].end());
    }
    REQUIRE(before.size() == placed.size());
    for (size_t a = 0; a < system_of.size(); ++a)
        for (size_t b = 0; b < a; ++b) {
            const double now = distance(&placed[3 * a], &placed[3 * b]);
            if (system_of[a] == system_of[b])
                CHECK(std::abs(now - distance(&before[3 * a], &before[3 * b])) <= 1e-12);
            else
                CHECK(now > kReach);
        }
    views.pop_back();
    CHECK(!placement.holds(views));
}

TEST_CASE("periodic and very large systems are not placed") {
    const std::vector<Numbers> near = {{0, 0, 0, 1, 1, 1}, {5, 5, 5}}, far = {{0, 0, 0, 0, 1e4, 0}, {5, 5, 5}};
    CHECK(Placement::is_possible(views_of(near)));
    CHECK(!Placement::is_possible(views_of(far)));
    std::vector<SystemView> views = views_of(near);
    views[1].periodic = {false, true, false};
    CHECK(!Placement::is_possible(views));
}
