// SPDX-License-Identifier: MIT
// Path-integral molecular dynamics: a quantum system of N atoms as a ring polymer of P beads, copies of the system,
//
//   H = sum over beads j:  sum over atoms m v_j^2 / 2 + m w_P^2 (x_j - x_{j+1})^2 / 2  +  V(x_j),   w_P = P k T / hbar
//
// which is sampled at the temperature P T. A step is
//
//   half kick, half of the free ring polymer, thermostat, half of the free ring polymer, half kick
//
// where the free ring polymer moves exactly, in its normal modes. The thermostat is PILE-L (Ceriotti et al. 2010):
// friction 1/tau for the centroid, and 2 w_k, critical damping, for the mode of frequency w_k = 2 w_P sin(k pi / P).
// Without it this is ring-polymer molecular dynamics. With one bead it is BAOAB, bit for bit. The forces of a step are
// one batch.
#pragma once

#include <optional>
#include <vector>

#include "dynamics/batch_forces.h"
#include "dynamics/langevin.h"
#include "dynamics/snapshot.h"
#include "dynamics/stability.h"

namespace mlff {

struct RingPolymerOptions {
    double time_step = 1;          // fs
    ThermostatOptions thermostat;  // none or Langevin; its temperature, T, counts without a thermostat too
};

// Orthonormal real modes of a ring: mode 0 is the centroid times the square root of the number of beads.
struct RingModes {
    RingModes(int64_t beads, double temperature);  // throws Error{argument}

    size_t count;
    double spring;                    // w_P, 1/fs
    std::vector<double> frequencies;  // [mode], 1/fs
    std::vector<double> of_bead;      // [bead][mode]
    std::vector<double> of_mode;      // [mode][bead], its transpose
};

// Beads that are all where `centroid` is. Its velocities are those of the centroid of the beads; the other modes have
// velocities of the temperature P T.
std::vector<Particles> make_beads(const Particles& centroid, int64_t count, double temperature, uint64_t seed);

class RingPolymer {
public:
    // Computes the first forces. `forces` must outlive this. Particles::rigid_degrees is that of the centroid. Throws
    // Error{argument} for invalid options and for fixed atoms.
    RingPolymer(BatchForces& forces, std::vector<Particles> beads, const RingPolymerOptions& options);
    // Continues after `step_count` steps with this heat, bit for bit if the beads are those of beads().
    void go_on_at(int64_t step_count, double heat);
    // Checks every step from now on, and keeps the last ones: see StabilityGuard, for the centroid and
    // ring_temperature().
    void watch(const StabilityLimits& limits);

    void step();  // throws Error{system} if something is not finite or beyond the limits

    size_t bead_count() const { return beads_.size(); }
    size_t atom_count() const { return beads_.front().atom_count(); }
    int64_t step_count() const { return step_count_; }
    const std::vector<Particles>& beads() const { return beads_; }
    double bead_potential_energy(size_t bead) const { return answers_[bead].energy; }  // eV
    Particles centroid() const;                                                        // means of the beads
    // The energy is the mean of the beads, the kinetic energy and the temperature are those of the centroid.
    Snapshot centroid_snapshot() const;
    Snapshot bead_snapshot(size_t bead) const;
    const RecentSnapshots& recent() const { return recent_; }  // of the centroid, if watch() was called

    double potential_energy() const;          // eV, mean of the beads
    double primitive_kinetic_energy() const;  // eV, 3 N P k T / 2 - spring_energy() / P
    double virial_kinetic_energy() const;     // eV, 3 N k T / 2 - mean of (x_j - centroid) . f_j / 2
    double total_energy() const { return potential_energy() + virial_kinetic_energy(); }
    double ring_temperature() const;  // K, of all modes, divided by P: its mean is T
    double spring_energy() const;     // eV
    double heat() const { return heat_; }
    // The energy of the ring polymer minus the heat of the thermostat, divided by P: constant but for the error of the
    // integrator.
    double conserved_energy() const;

private:
    double bead_kinetic_energy() const;  // eV, the sum
    void compute_forces();
    void kick();
    void move_atom(size_t atom);  // the free ring polymer and the thermostat
    void check_ring_temperature() const;

    BatchForces& forces_;
    RingPolymerOptions options_;
    std::vector<Particles> beads_;
    RingModes modes_;
    std::vector<double> cosines_, velocity_to_position_, position_to_velocity_;  // [mode], of half a time step
    std::vector<LangevinKick> kicks_;                                            // [mode]; empty: no thermostat
    std::vector<double> inverse_masses_;                                         // [atom], with the unit
    std::vector<double> mode_positions_, mode_velocities_;                       // [atom][3][mode]
    std::vector<double> growths_;                                                // [atom], of m v^2
    std::vector<SystemView> systems_;
    std::vector<BatchAnswer> answers_;
    std::vector<BatchAnswer*> places_;
    int64_t step_count_ = 0;
    double heat_ = 0;  // eV
    std::optional<StabilityGuard> guard_;
    RecentSnapshots recent_;
};

}  // namespace mlff
