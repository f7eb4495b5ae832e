// SPDX-License-Identifier: MIT
#include "dynamics/surroundings.h"

#include <algorithm>
#include <cmath>

#include "neighbors/neighbor_list.h"

namespace mlff {
namespace {

bool are_near(const std::vector<double>& a, const std::vector<double>& b) {
    for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
        const double first = i < a.size() ? a[i] : Surroundings::kCutoff;
        const double second = i < b.size() ? b[i] : Surroundings::kCutoff;
        if (!(std::abs(first - second) <= Surroundings::kTolerance)) return false;
    }
    return true;
}

}  // namespace

Surroundings::Surroundings(const SystemView& system, int64_t atom) : atomic_number_(system.atomic_numbers[atom]) {
    NeighborOptions options;
    options.cutoff = kCutoff;
    NeighborList list(options);
    ThreadTeam team(1);
    list.update(system, team);
    const Edges& edges = list.edges();
    for (int64_t edge = edges.first[atom]; edge < edges.first[atom + 1]; ++edge)
        distances_[system.atomic_numbers[edges.sender[edge]]].push_back(edges.distance[edge]);
    for (auto& [element, distances] : distances_) std::sort(distances.begin(), distances.end());
}

bool Surroundings::are_like(const Surroundings& other) const {
    if (atomic_number_ != other.atomic_number_) return false;
    static const std::vector<double> kNone;
    const auto of = [](const Surroundings& one, int32_t element) -> const std::vector<double>& {
        const auto found = one.distances_.find(element);
        return found == one.distances_.end() ? kNone : found->second;
    };
    for (const Surroundings* one : {this, &other})
        for (const auto& [element, distances] : one->distances_)
            if (!are_near(of(*this, element), of(other, element))) return false;
    return true;
}

}  // namespace mlff
