// SPDX-License-Identifier: MIT
// Detects unphysical runs: atoms that fly away, temperatures far too high. Builds the message for the user.
#pragma once

#include <optional>
#include <string>

#include "dynamics/particles.h"

namespace mlff {

struct AtomPair {
    int64_t first = 0, second = 0;
    double distance = 0;  // angstrom
};

// The closest pair of atoms (or images), up to 12 angstrom. Nothing if positions are not finite.
std::optional<AtomPair> closest_pair(const SystemView& system);
std::string describe_closest_pair(
    const SystemView& system);  // "; the closest atoms are 3 (H) and 7 (O), 0.31 A apart", or nothing

struct StabilityLimits {
    double temperature = 10000;  // K
    double distance =
        50;  // angstrom, in open directions: allowed distance from the centre beyond that of the outermost initial atom
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
