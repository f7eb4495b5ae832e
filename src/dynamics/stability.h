// SPDX-License-Identifier: MIT
// When a run is no longer physics: atoms that fly away, temperatures that no one asked for. And what to tell people
// about it.
#pragma once

#include <optional>
#include <string>

#include "dynamics/particles.h"

namespace mlff {

struct AtomPair {
    int64_t first = 0, second = 0;
    double distance = 0;  // angstrom
};

// The two atoms, or images of atoms, that are closest to each other, up to 12 angstrom. Nothing where positions are not
// finite.
std::optional<AtomPair> closest_pair(const SystemView& system);
std::string describe_closest_pair(
    const SystemView& system);  // "; the closest atoms are 3 (H) and 7 (O), 0.31 A apart", or nothing

struct StabilityLimits {
    double temperature = 10000;  // K
    double distance =
        50;  // angstrom, in open directions: how much farther from the centre than the outermost atom at the start
};

class StabilityGuard {
public:
    StabilityGuard(const Particles& start, const StabilityLimits& limits);
    // Throws Error{system} that names the atom and the closest pair.
    void check(const Particles& particles, int64_t step) const;
    double highest_temperature() const { return temperature_; }  // K
    double farthest() const { return farthest_; }  // angstrom from the centre of all atoms, in open directions

private:
    double farthest_, temperature_;
};

}  // namespace mlff
