// SPDX-License-Identifier: MIT
// Molecular dynamics: velocity Verlet, with an optional thermostat and barostat. A step is
//
//   thermostat, half kick, half drift, thermostat, barostat, half drift, forces, half kick, thermostat
//
// Each thermostat acts at some of these places. With Langevin between the half drifts this is BAOAB. A step computes
// forces once and allocates no memory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "dynamics/cell_rescaling.h"
#include "dynamics/force_provider.h"
#include "dynamics/particles.h"
#include "dynamics/snapshot.h"
#include "dynamics/stability.h"
#include "dynamics/thermostat.h"
#include "engine/session.h"
#include "potential/outputs.h"

namespace mlff {

struct LangevinBath {
    double temperature = 300;  // K
    double friction = 0.01;    // 1/fs
    uint64_t seed = 1;
};

struct DynamicsOptions {
    double time_step = 1;  // fs
    ThermostatOptions thermostat;
    std::optional<BarostatOptions> barostat;  // needs a thermostat
    int64_t remove_momentum_every = 0;        // steps; 0 = never. Also removes the rotation if nothing is periodic
    bool wants_virial = false;                // computes virial() in each step; always on with a barostat
    int64_t trust_every = 0;                  // steps; 0 = never. The trust meter measures in steps that are multiples
};

// The current state of a run.
struct DynamicsNow {
    Particles particles;
    std::vector<double> forces;   // eV/angstrom
    Mat3 virial{};                // eV
    double potential_energy = 0;  // eV
    double kinetic_energy = 0;    // eV; only for runs on a GPU
    double heat = 0;              // eV, see MolecularDynamics::conserved_energy()
    int64_t step_count = 0;
    TrustReading trust;       // of step trust_step
    int64_t trust_step = -1;  // the last step in which trust was measured; -1: none
};

// Everything the next step depends on.
struct DynamicsState {
    Particles particles;
    int64_t step_count = 0;
    double potential_energy = 0;  // eV; recomputed and compared when a run continues
    double heat = 0;              // eV, see conserved_energy()
    std::vector<double> thermostat;
    std::vector<double>
        searched_positions;  // at the last neighbour search: determine the order of sums until the next one
    Mat3 searched_cell{};
};

// Whether the trust meter measures in this step.
inline bool measures_trust(const DynamicsOptions& options, int64_t step) {
    return options.trust_every > 0 && step % options.trust_every == 0;
}

// The number of degrees of freedom that these options keep at rest: the centre of mass, and the rotation if it is
// removed; none in a Langevin bath.
int count_rigid_degrees(const DynamicsOptions& options, const Particles& particles);

// Throws Error{system} that names the atom and the step.
void check_finite(const DynamicsNow& now);

class ResidentMotion;

class MolecularDynamics {
public:
    // Compute the first forces. `session` and `provider` must outlive this. Throw Error for invalid options. The first
    // constructor keeps Particles::rigid_degrees; the others set it from the options.
    MolecularDynamics(Session& session, Particles particles, double time_step, std::optional<LangevinBath> bath = {});
    MolecularDynamics(ForceProvider& provider, Particles particles, const DynamicsOptions& options);
    // Continues from a state, bit for bit like the original run. This needs the same options, and a provider that has
    // not searched neighbours yet.
    MolecularDynamics(ForceProvider& provider, const DynamicsState& state, const DynamicsOptions& options);
    ~MolecularDynamics();
    MolecularDynamics(MolecularDynamics&&) noexcept;

    // Keeps the atoms on the GPU from now on (resident_motion.h). The provider must have used the stepper's evaluator
    // last. Both arguments must outlive this.
    void move_to_device(DeviceStepper& stepper, ThreadTeam& team);
    // Checks every step from now on: one beyond the limits throws Error{system}. Also keeps the last steps.
    void watch(const StabilityLimits& limits);

    // Throw Error{system} if the energy or a force is not finite; the particles are then those of the failed step.
    void step() { advance(1); }
    // Runs `count` steps, or fewer: `goes_on`, unless empty, is called after each step, and false stops the run. On a
    // GPU, steps already launched are finished. `goes_on` must not access the atoms.
    void advance(int64_t count, const std::function<bool()>& goes_on = {});

    // The two halves of a step, for systems whose forces are computed together in between (many_dynamics.h): positions
    // are new after the first, and the second asks the provider for their forces. Not on a GPU.
    void begin_step();
    void finish_step();

    const Particles& particles() const { return here().particles; }
    const std::vector<double>& forces() const { return here().forces; }  // eV/angstrom
    const RecentSnapshots& recent() const;  // the steps before the last one, if watch() was called

    // These need no transfer of the atoms from the GPU.
    double potential_energy() const { return now_.potential_energy; }  // eV
    double kinetic_energy() const { return resident_ ? now_.kinetic_energy : now_.particles.kinetic_energy(); }
    double temperature() const { return now_.particles.temperature_of(kinetic_energy()); }  // K
    double total_energy() const { return potential_energy() + kinetic_energy(); }
    // The total energy minus the heat from thermostats. Constant except for the integrator's error. Not valid with a
    // barostat.
    double conserved_energy() const { return total_energy() - now_.heat; }
    double heat() const { return now_.heat; }                             // eV
    const Mat3& virial() const { return now_.virial; }                    // eV
    const Mat3& cell() const { return now_.particles.environment.cell; }  // angstrom
    const TrustReading& trust() const { return now_.trust; }              // of step trust_step()
    int64_t trust_step() const { return now_.trust_step; }                // -1: trust was not measured yet
    double pressure() const;  // eV/angstrom^3, a third of the trace; needs the virial
    int64_t step_count() const { return now_.step_count; }
    size_t atom_count() const { return now_.particles.atom_count(); }
    double time_step() const { return options_.time_step; }  // fs
    const DynamicsOptions& options() const { return options_; }
    bool is_resident() const { return resident_ != nullptr; }

    DynamicsState state() const;

    // Swaps the atoms of two runs of the same system, with their forces. Velocities are scaled: multiplied by `warming`
    // where they come to `hot`, divided by it where they come to `cold`. Counts as heat. Not on a GPU.
    friend void swap_atoms(MolecularDynamics& cold, MolecularDynamics& hot, double warming);

private:
    MolecularDynamics(std::unique_ptr<ForceProvider> owned, ForceProvider* provider, Particles particles,
                      const DynamicsOptions& options);
    const DynamicsNow& here() const;  // including the atoms
    void compute_forces();
    void kick();   // updates velocities by half a step
    void drift();  // updates positions by half a step

    std::unique_ptr<ForceProvider> owned_;
    ForceProvider* provider_;
    DynamicsOptions options_;
    mutable DynamicsNow now_;  // in runs on a GPU, a copy of the state there
    std::unique_ptr<Thermostat> thermostat_;
    std::optional<CellRescaling> barostat_;
    std::vector<double> inverse_masses_;  // [atom], 1/u times the unit of acceleration; 0 for a fixed atom
    int64_t search_count_ = -1;
    std::vector<double> searched_positions_;
    Mat3 searched_cell_{};
    std::optional<StabilityGuard> guard_;
    mutable RecentSnapshots recent_;
    std::unique_ptr<ResidentMotion> resident_;
};

void swap_atoms(MolecularDynamics& cold, MolecularDynamics& hot, double warming);

}  // namespace mlff
