// SPDX-License-Identifier: MIT
#include "dynamics/relaxation.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/matrix3.h"
#include "dynamics/fire.h"
#include "dynamics/lbfgs.h"
#include "dynamics/units.h"

namespace mlff {
namespace {

// What deforms the initial cell.
Mat3 deformation_of(Mat3 varied, bool keeps_volume) {
    if (!keeps_volume) return varied;
    const double scale = 1 / std::cbrt(determinant(varied));
    for (Vec3& row : varied)
        for (double& entry : row) entry *= scale;
    return varied;
}

}  // namespace

Relaxation::Relaxation(const Particles& start, const RelaxationOptions& options)
    : options_(options),
      particles_(start),
      start_cell_(start.environment.cell),
      variables_(start.positions),
      forces_(start.positions.size()) {
    if (!(options.largest_force > 0))
        fail(Status::argument, "the force limit is ", options.largest_force, " eV/A, expected more than 0");
    if (!(options.largest_stress > 0))
        fail(Status::argument, "the stress limit is ", options.largest_stress, " eV/A^3, expected more than 0");
    if (!std::isfinite(options.pressure)) fail(Status::argument, "the pressure is not finite");
    if (options.step_limit < 0)
        fail(Status::argument, "the step limit is ", options.step_limit, ", expected 0 or more");
    if (options.method == RelaxationOptions::Method::fire)
        minimizer_ = std::make_unique<Fire>();
    else
        minimizer_ = std::make_unique<Lbfgs>();
    if (options.keeps_volume && (!options.with_cell || options.pressure != 0))
        fail(Status::argument, "constant volume needs a cell that is relaxed, without a pressure");
    if (!options.with_cell) return;
    if (start.has_fixed_atoms())
        fail(Status::system,
             "some atoms are fixed, and a changing cell would move them: to relax the cell, all atoms must be free");
    for (size_t k = 0; k < 3; ++k)
        if (!start.environment.periodic[k])
            fail(Status::system, "relaxing the cell needs a system that is periodic in all directions; direction ",
                 k + 1, " is not");
    if (start.atom_count() == 0) fail(Status::system, "relaxing the cell needs at least one atom");
    for (size_t k = 0; k < 9; ++k)
        variables_.push_back(kIdentity[k / 3][k % 3] * static_cast<double>(start.atom_count()));
}

Mat3 Relaxation::varied_matrix() const {
    const size_t count = particles_.atom_count();
    Mat3 matrix{};
    for (size_t k = 0; k < 9; ++k) matrix[k / 3][k % 3] = variables_[3 * count + k] / static_cast<double>(count);
    return matrix;
}

void Relaxation::set_gradient() {
    const size_t count = particles_.atom_count();
    gradient_.resize(variables_.size());
    largest_force_ = 0;
    for (size_t atom = 0; atom < count; ++atom)
        for (size_t i = 3 * atom; i < 3 * atom + 3; ++i) gradient_[i] = particles_.moves(atom) ? -forces_[i] : 0;
    for (size_t i = 0; i < 3 * count; i += 3)
        largest_force_ = std::max(largest_force_, std::hypot(gradient_[i], gradient_[i + 1], gradient_[i + 2]));
    if (!options_.with_cell) return;
    const Mat3 varied = varied_matrix();
    const double volume = std::abs(determinant(particles_.environment.cell));
    const double mean_slope = -(virial_[0][0] + virial_[1][1] + virial_[2][2]) / 3;
    const double opposed = options_.keeps_volume ? -mean_slope : options_.pressure * kBar * volume;
    Mat3 slope{};  // dH/dstrain, H the enthalpy
    largest_stress_ = 0;
    for (size_t i = 0; i < 3; ++i)
        for (size_t j = 0; j < 3; ++j) {
            slope[i][j] = -0.5 * (virial_[i][j] + virial_[j][i]) + (i == j ? opposed : 0);
            largest_stress_ = std::max(largest_stress_, std::abs(slope[i][j]) / volume);
        }
    transform_vectors(transposed(deformation_of(varied, options_.keeps_volume)), gradient_.data(), count);
    // The scale of constant volume adds only a multiple of the trace of `slope`, which is then zero.
    const Mat3 by_deformation = product(slope, transposed(inverse(varied)));
    for (size_t i = 0; i < 3; ++i)
        for (size_t j = 0; j < 3; ++j)
            gradient_[3 * count + 3 * i + j] =
                0.5 * (by_deformation[i][j] + by_deformation[j][i]) / static_cast<double>(count);
}

void Relaxation::place_atoms() {
    const size_t count = particles_.atom_count();
    std::copy_n(variables_.begin(), 3 * count, particles_.positions.begin());
    if (!options_.with_cell) return;
    const Mat3 varied = varied_matrix();
    if (!(determinant(varied) > 0.05 && determinant(varied) < 20))
        fail(Status::system, "the cell has ", determinant(varied), " times its initial volume after ", move_count_,
             " moves: the model does not hold this structure together");
    const Mat3 deformation = deformation_of(varied, options_.keeps_volume);
    transform_vectors(deformation, particles_.positions.data(), count);
    particles_.environment.cell = start_cell_;
    transform_vectors(deformation, particles_.environment.cell[0].data(), 3);
}

void Relaxation::advance(double energy, std::span<const double> forces, const Mat3& virial) {
    if (is_finished()) return;
    if (!std::isfinite(energy)) fail(Status::system, "the energy is not finite after ", move_count_, " moves");
    for (size_t i = 0; i < forces.size(); ++i)
        if (!std::isfinite(forces[i]))
            fail(Status::system, "the force on atom ", i / 3, " is not finite after ", move_count_, " moves");
    energy_ = energy;
    std::copy(forces.begin(), forces.end(), forces_.begin());
    for (const Vec3& row : virial)
        for (const double number : row)
            if (!std::isfinite(number)) fail(Status::system, "the virial is not finite after ", move_count_, " moves");
    virial_ = virial;
    set_gradient();
    is_converged_ =
        largest_force_ <= options_.largest_force && (!options_.with_cell || largest_stress_ <= options_.largest_stress);
    is_at_limit_ = move_count_ >= options_.step_limit;
    if (is_finished()) return;
    const double enthalpy =
        energy +
        (options_.with_cell ? options_.pressure * kBar * std::abs(determinant(particles_.environment.cell)) : 0);
    minimizer_->step(variables_, enthalpy, gradient_);
    ++move_count_;
    place_atoms();
}

}  // namespace mlff
