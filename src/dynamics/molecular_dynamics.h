// SPDX-License-Identifier: MIT
// Molecular dynamics: velocity Verlet, with a thermostat and a barostat if wanted. A step is
//
//   thermostat, half kick, half drift, thermostat, barostat, half drift, forces, half kick, thermostat
//
// where each thermostat acts at its own places: with Langevin between the drifts this is BAOAB. One computation of
// forces a step, and no memory taken.
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

namespace mlff {

struct LangevinBath {
    double temperature = 300;  // K
    double friction = 0.01;    // 1/fs
    uint64_t seed = 1;
};

struct DynamicsOptions {
    double time_step = 1;  // fs
    ThermostatOptions thermostat;
    std::optional<BarostatOptions> barostat;  // with a thermostat only
    int64_t remove_momentum_every = 0;        // steps; 0 = never. Where nothing is periodic, the rotation too
    bool wants_virial = false;                // virial() after each step; always there with a barostat
};

// Where a run is.
struct DynamicsNow {
    Particles particles;
    std::vector<double> forces;   // eV/angstrom
    Mat3 virial{};                // eV
    double potential_energy = 0;  // eV
    double kinetic_energy = 0;    // eV; of runs on a GPU
    double heat = 0;              // eV, see MolecularDynamics::conserved_energy()
    int64_t step_count = 0;
};

// All that the next step depends on.
struct DynamicsState {
    Particles particles;
    int64_t step_count = 0;
    double potential_energy = 0;  // eV; recomputed when a run goes on, and compared
    double heat = 0;              // eV, see conserved_energy()
    std::vector<double> thermostat;
    std::vector<double>
        searched_positions;  // where neighbours were last searched: decides the order of sums until the next search
    Mat3 searched_cell{};
};

// How many degrees of freedom these options keep at rest: those of the centre of mass, and of the rotation where it is
// removed; none in a Langevin bath.
int count_rigid_degrees(const DynamicsOptions& options, const Particles& particles);

// Throws Error{system} that names the atom and the step.
void check_finite(const DynamicsNow& now);

class ResidentMotion;

class MolecularDynamics {
public:
    // Compute the first forces. `session` and `provider` must outlive this. Throw Error for options that make no sense.
    // The first leaves Particles::rigid_degrees as it is; the others count what these options keep at rest.
    MolecularDynamics(Session& session, Particles particles, double time_step, std::optional<LangevinBath> bath = {});
    MolecularDynamics(ForceProvider& provider, Particles particles, const DynamicsOptions& options);
    // Goes on from a state, bit for bit as the run that it is of, given the same options and a provider that has not
    // searched neighbours before.
    MolecularDynamics(ForceProvider& provider, const DynamicsState& state, const DynamicsOptions& options);
    ~MolecularDynamics();
    MolecularDynamics(MolecularDynamics&&) noexcept;

    // From now on the atoms stay on the GPU, whose evaluator the provider has used last; both must outlive this. See
    // resident_motion.h.
    void move_to_device(DeviceStepper& stepper, ThreadTeam& team);
    // From now on a step beyond the limits throws Error{system}, and the last steps are kept.
    void watch(const StabilityLimits& limits);

    // Throw Error{system} if energy or forces are no longer finite; the particles are then those of the step that
    // failed.
    void step() { advance(1); }
    // So many steps, or fewer if `goes_on`, unless it is empty, says so after one; on a GPU what is launched by then is
    // finished. `goes_on` may ask for what is known without the atoms, not for them.
    void advance(int64_t count, const std::function<bool()>& goes_on = {});

    const Particles& particles() const { return here().particles; }
    const std::vector<double>& forces() const { return here().forces; }  // eV/angstrom
    const RecentSnapshots& recent() const;  // those before the last step, if the run is watched

    // These are known without asking the GPU for the atoms.
    double potential_energy() const { return now_.potential_energy; }  // eV
    double kinetic_energy() const { return resident_ ? now_.kinetic_energy : now_.particles.kinetic_energy(); }
    double temperature() const { return now_.particles.temperature_of(kinetic_energy()); }  // K
    double total_energy() const { return potential_energy() + kinetic_energy(); }
    // The total energy less what thermostats have brought in: constant but for the error of the integrator. Not with a
    // barostat.
    double conserved_energy() const { return total_energy() - now_.heat; }
    double heat() const { return now_.heat; }                             // eV
    const Mat3& virial() const { return now_.virial; }                    // eV
    const Mat3& cell() const { return now_.particles.environment.cell; }  // angstrom
    double pressure() const;  // eV/angstrom^3, the mean of the three; needs the virial
    int64_t step_count() const { return now_.step_count; }
    size_t atom_count() const { return now_.particles.atom_count(); }
    double time_step() const { return options_.time_step; }  // fs
    const DynamicsOptions& options() const { return options_; }
    bool is_resident() const { return resident_ != nullptr; }

    DynamicsState state() const;

private:
    MolecularDynamics(std::unique_ptr<ForceProvider> owned, ForceProvider* provider, Particles particles,
                      const DynamicsOptions& options);
    const DynamicsNow& here() const;  // with atoms
    void step_here();
    void compute_forces();
    void kick();   // velocities, by half a step
    void drift();  // positions, by half a step

    std::unique_ptr<ForceProvider> owned_;
    ForceProvider* provider_;
    DynamicsOptions options_;
    mutable DynamicsNow now_;  // in runs on a GPU a copy of what is there
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

}  // namespace mlff
