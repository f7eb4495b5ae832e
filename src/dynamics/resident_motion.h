// SPDX-License-Identifier: MIT
// Dynamics whose atoms stay on the GPU: positions, velocities, neighbours, model, thermostat. The host launches a step
// as one graph, a step ahead of the one that runs, and learns energies; frames come to it when they are asked for. It
// has a word where the cell changes or rigid motion is removed.
#pragma once

#include <functional>
#include <memory>

#include "dynamics/molecular_dynamics.h"
#include "dynamics/snapshot.h"
#include "dynamics/stability.h"
#include "potential/device_stepper.h"

namespace mlff {

class ResidentMotion {
public:
    virtual ~ResidentMotion() = default;
    // Steps until `last_step`, fewer if `goes_on`, unless empty, says so after one. `now` follows but for positions,
    // velocities and forces, which fetch() brings. Throws Error{system} when `guard` or the numbers say that the run is
    // broken.
    virtual void advance(DynamicsNow& now, int64_t last_step, const std::function<bool()>& goes_on,
                         const StabilityGuard* guard) = 0;
    virtual void fetch(DynamicsNow& now) = 0;           // what is not there yet
    virtual void fetch_rest(DynamicsState& state) = 0;  // numbers of the thermostat, and where neighbours were searched
    virtual void fetch_recent(RecentSnapshots& snapshots) = 0;  // of the steps before the last
};

// `thermostat` are its numbers, of which there may be none. The stepper must have computed the forces of `now` last,
// and outlive this.
std::unique_ptr<ResidentMotion> make_resident_motion(DeviceStepper& stepper, ThreadTeam& team,
                                                     const DynamicsOptions& options, const DynamicsNow& now,
                                                     std::span<const double> thermostat);

}  // namespace mlff
