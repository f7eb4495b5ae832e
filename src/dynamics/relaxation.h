// SPDX-License-Identifier: MIT
// Structures on their way to a minimum of the energy or, with the cell, of the enthalpy E + P V. Several are evaluated
// together.
//
// With the cell the variables are u_i and n F, where positions = F u, lattice vectors = F (those at the start), F
// symmetric and n the number of atoms, which makes a strain about as stiff as an atom.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "dynamics/minimizer.h"
#include "dynamics/particles.h"
#include "engine/session.h"

namespace mlff {

struct RelaxationOptions {
    enum class Method { fire, lbfgs };
    Method method = Method::lbfgs;
    bool with_cell = false;
    double pressure = 0;           // bar, with the cell
    double largest_force = 0.01;   // eV/angstrom: done when no atom feels more and,
    double largest_stress = 5e-4;  // eV/angstrom^3, with the cell, no entry of the stress is farther from the pressure
    int64_t step_limit = 1000;     // moves
};

class Relaxation {
public:
    // Throws Error for options that make no sense, or a cell that is to change but is not periodic in all directions.
    Relaxation(const Particles& start, const RelaxationOptions& options);

    // Takes what the model says of particles(), then moves on unless is_finished(). Throws Error{system} if it is not
    // finite.
    void advance(double energy, std::span<const double> forces, const Mat3& virial);

    const Particles& particles() const { return particles_; }
    // Of particles(), once is_finished(); before that of those before the last move.
    double energy() const { return energy_; }                      // eV
    const std::vector<double>& forces() const { return forces_; }  // eV/angstrom, fixed atoms included
    const Mat3& virial() const { return virial_; }                 // eV; zero if the model gives none
    bool moves_cell() const { return options_.with_cell; }
    double largest_force() const { return largest_force_; }  // on atoms that move
    double largest_stress() const {
        return largest_stress_;
    }  // distance of the stress from the pressure; 0 without the cell
    int64_t move_count() const { return move_count_; }
    bool is_converged() const { return is_converged_; }
    bool is_finished() const { return is_converged_ || is_at_limit_; }

private:
    void set_gradient();
    void place_atoms();

    RelaxationOptions options_;
    Particles particles_;
    Mat3 start_cell_;
    std::unique_ptr<Minimizer> minimizer_;
    std::vector<double> variables_, gradient_, forces_;
    Mat3 virial_{};
    double energy_ = 0, largest_force_ = 0, largest_stress_ = 0;
    int64_t move_count_ = 0;
    bool is_converged_ = false, is_at_limit_ = false;
};

// Advances all that are not finished, together, until all are.
void relax_together(Session& session, std::span<Relaxation> relaxations);

}  // namespace mlff
