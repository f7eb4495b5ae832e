// SPDX-License-Identifier: MIT
// Molecular dynamics with the forces of a session: velocity Verlet and, with a bath, Langevin dynamics in the splitting BAOAB (Leimkuhler and
// Matthews 2013), of which velocity Verlet is the part without a bath.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "dynamics/particles.h"
#include "engine/session.h"

namespace mlff {

struct LangevinBath {
    double temperature = 300;  // K
    double friction = 0.01;    // 1/fs
    uint64_t seed = 1;
};

class MolecularDynamics {
public:
    // Computes the first forces. `session` must outlive this.
    MolecularDynamics(Session& session, Particles particles, double time_step, std::optional<LangevinBath> bath = {});

    // Throws Error{system} if energy or forces are no longer finite; the particles are then those of the step that failed.
    void step();

    const Particles& particles() const { return particles_; }
    const std::vector<double>& forces() const { return forces_; }    // eV/angstrom
    double potential_energy() const { return potential_energy_; }    // eV
    double total_energy() const { return potential_energy_ + particles_.kinetic_energy(); }
    int64_t step_count() const { return step_count_; }
    double time_step() const { return time_step_; }  // fs

private:
    void compute_forces();
    void kick();   // velocities, by half a step
    void drift();  // positions, by half a step
    void shake_velocities();

    Session& session_;
    Particles particles_;
    double time_step_;
    std::optional<LangevinBath> bath_;
    std::vector<double> forces_;
    double potential_energy_ = 0;
    int64_t step_count_ = 0;
};

}  // namespace mlff
