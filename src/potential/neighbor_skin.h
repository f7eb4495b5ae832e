// SPDX-License-Identifier: MIT
// How far beyond the cutoff neighbour candidates are kept, so that one search serves several calls. A larger skin means
// fewer searches, but more candidates to look at. The edges are the same with any skin. All defaults are here.
#pragma once

#include <cmath>

#include "core/device.h"
#include "core/error.h"

namespace mlff {

class NeighborSkin {
public:
    static constexpr double kOnGpu = 1;             // angstrom; steps without a search need no host synchronisation
    static constexpr double kOfTrajectories = 0.5;  // angstrom, on the CPU: a search every few tens of steps

    NeighborSkin() = default;  // automatic
    static NeighborSkin automatic() { return {}; }
    static NeighborSkin none() { return {Kind::none, 0}; }  // every call searches
    static NeighborSkin of(double angstrom) {
        if (!std::isfinite(angstrom) || angstrom <= 0)
            fail(Status::argument, "a neighbour skin of ", angstrom, " angstrom; expected more than 0");
        return {Kind::given, angstrom};
    }

    // Angstrom; 0 = none. On a trajectory atoms move little between calls.
    double angstrom_on(const Device& device, bool is_trajectory) const {
        switch (kind_) {
            case Kind::none: return 0;
            case Kind::given: return angstrom_;
            case Kind::automatic: break;
        }
        if (device.is_gpu()) return kOnGpu;
        return is_trajectory ? kOfTrajectories : 0;
    }

private:
    enum class Kind { automatic, none, given };
    NeighborSkin(Kind kind, double angstrom) : kind_(kind), angstrom_(angstrom) {}
    Kind kind_ = Kind::automatic;
    double angstrom_ = 0;
};

}  // namespace mlff
