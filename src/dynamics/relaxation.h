// SPDX-License-Identifier: MIT
// Relaxes a structure to a minimum of the energy or, with the cell, of the enthalpy E + P V. relaxation_batch.h relaxes
// several at once.
//
// With the cell, the variables are u_i and n F: positions = F u, lattice vectors = F (initial lattice vectors), F
// symmetric. n is the number of atoms, which makes a strain about as stiff as an atom. At constant volume F is divided
// by the cube root of its determinant.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "dynamics/minimizer.h"
#include "dynamics/particles.h"

namespace mlff {

struct RelaxationOptions {
    enum class Method { fire, lbfgs };
    Method method = Method::lbfgs;
    bool with_cell = false;
    bool keeps_volume = false;     // with the cell: only its shape changes, and there is no pressure
    double pressure = 0;           // bar; used with the cell
    double largest_force = 0.01;   // eV/angstrom; converged when no force is larger and,
    double largest_stress = 5e-4;  // eV/angstrom^3; with the cell, no stress component is farther from the pressure
    int64_t step_limit = 1000;     // moves
};

class Relaxation {
public:
    // Throws Error for invalid options, or if the cell is to be relaxed but is not periodic in all directions.
    Relaxation(const Particles& start, const RelaxationOptions& options);

    // Takes the results for particles(), then moves unless is_finished(). Throws Error{system} if a result is not
    // finite.
    void advance(double energy, std::span<const double> forces, const Mat3& virial);

    const Particles& particles() const { return particles_; }
    // Results for particles() once is_finished(); before that, for the positions before the last move.
    double energy() const { return energy_; }                      // eV
    const std::vector<double>& forces() const { return forces_; }  // eV/angstrom, fixed atoms included
    const Mat3& virial() const { return virial_; }                 // eV; zero if the model provides none
    bool moves_cell() const { return options_.with_cell; }
    double largest_force() const { return largest_force_; }  // on atoms that move
    double largest_stress() const {
        return largest_stress_;
    }  // largest deviation of the stress from the pressure; 0 without the cell
    int64_t move_count() const { return move_count_; }
    bool is_converged() const { return is_converged_; }
    bool is_finished() const { return is_converged_ || is_at_limit_; }

private:
    Mat3 varied_matrix() const;  // the part of the variables that deforms the cell
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

}  // namespace mlff
