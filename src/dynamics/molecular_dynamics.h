// SPDX-License-Identifier: MIT
// Molecular dynamics: velocity Verlet, with a thermostat and a barostat if wanted. A step is
//
//   thermostat, half kick, half drift, thermostat, barostat, half drift, forces, half kick, thermostat
//
// where each thermostat acts at its own places: with Langevin between the drifts this is BAOAB. One computation of forces a step, and no memory taken.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "dynamics/cell_rescaling.h"
#include "dynamics/force_provider.h"
#include "dynamics/particles.h"
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

// All that the next step depends on.
struct DynamicsState {
    Particles particles;
    int64_t step_count = 0;
    double potential_energy = 0;  // eV; recomputed when a run goes on, and compared
    double heat = 0;              // eV, see conserved_energy()
    std::vector<double> thermostat;
    std::vector<double> searched_positions;  // where neighbours were last searched: decides the order of sums until the next search
    Mat3 searched_cell{};
};

// How many degrees of freedom these options keep at rest: those of the centre of mass, and of the rotation where it is removed; none in a Langevin bath.
int count_rigid_degrees(const DynamicsOptions& options, const Particles& particles);

class MolecularDynamics {
public:
    // Compute the first forces. `session` and `provider` must outlive this. Throw Error for options that make no sense.
    // The first leaves Particles::rigid_degrees as it is; the others count what these options keep at rest.
    MolecularDynamics(Session& session, Particles particles, double time_step, std::optional<LangevinBath> bath = {});
    MolecularDynamics(ForceProvider& provider, Particles particles, const DynamicsOptions& options);
    // Goes on from a state, bit for bit as the run that it is of, given the same options and a provider that has not searched neighbours before.
    MolecularDynamics(ForceProvider& provider, const DynamicsState& state, const DynamicsOptions& options);

    // Throws Error{system} if energy or forces are no longer finite; the particles are then those of the step that failed.
    void step();

    const Particles& particles() const { return particles_; }
    const std::vector<double>& forces() const { return forces_; }    // eV/angstrom
    double potential_energy() const { return potential_energy_; }    // eV
    double total_energy() const { return potential_energy_ + particles_.kinetic_energy(); }
    // The total energy less what thermostats have brought in: constant but for the error of the integrator. Not with a barostat.
    double conserved_energy() const { return total_energy() - heat_; }
    double heat() const { return heat_; }        // eV
    const Mat3& virial() const { return virial_; }  // eV
    int64_t step_count() const { return step_count_; }
    double time_step() const { return options_.time_step; }  // fs
    const DynamicsOptions& options() const { return options_; }

    DynamicsState state() const;

private:
    MolecularDynamics(std::unique_ptr<ForceProvider> owned, ForceProvider* provider, Particles particles, const DynamicsOptions& options);
    void compute_forces();
    void kick();   // velocities, by half a step
    void drift();  // positions, by half a step

    std::unique_ptr<ForceProvider> owned_;
    ForceProvider* provider_;
    Particles particles_;
    DynamicsOptions options_;
    std::unique_ptr<Thermostat> thermostat_;
    std::optional<CellRescaling> barostat_;
    std::vector<double> inverse_masses_;  // [atom], 1/u times the unit of acceleration; 0 for a fixed atom
    std::vector<double> forces_;
    Mat3 virial_{};
    double potential_energy_ = 0, heat_ = 0;
    int64_t step_count_ = 0;
    int64_t search_count_ = -1;
    std::vector<double> searched_positions_;
    Mat3 searched_cell_{};
};

}  // namespace mlff
