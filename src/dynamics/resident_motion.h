// SPDX-License-Identifier: MIT
// Dynamics that keeps everything on the GPU: positions, velocities, neighbour list, model, thermostat. The host
// launches each step as one graph, one step ahead of the running one, and reads energies. It fetches positions only on
// request. Steps that change the cell or remove rigid motion need the host.
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
    // Runs until `last_step`, or stops earlier: `goes_on`, unless empty, is called after each step, and false stops the
    // run. Updates `now`, except positions, velocities and forces, which fetch() copies. Throws Error{system} if
    // `guard` finds the run unstable or results are not finite.
    virtual void advance(DynamicsNow& now, int64_t last_step, const std::function<bool()>& goes_on,
                         const StabilityGuard* guard) = 0;
    virtual void fetch(DynamicsNow& now) = 0;  // copies what the host does not have yet
    virtual void fetch_rest(
        DynamicsState& state) = 0;  // the thermostat's variables, and the positions of the last search
    virtual void fetch_recent(RecentSnapshots& snapshots) = 0;  // the steps before the last one
};

// `thermostat`: its variables, possibly empty. The stepper must have computed the forces of `now` last, and must
// outlive this.
std::unique_ptr<ResidentMotion> make_resident_motion(DeviceStepper& stepper, ThreadTeam& team,
                                                     const DynamicsOptions& options, const DynamicsNow& now,
                                                     std::span<const double> thermostat);

}  // namespace mlff
