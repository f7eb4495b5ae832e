// SPDX-License-Identifier: MIT
// The loss: a measure of the errors of energies per atom, force components and stresses.
#pragma once

#include <string>

#include "train/batches.h"

namespace mlff::train {

enum class Measure { squared, absolute, huber, length };  // length: |F - F_label| of each atom; forces only
Measure measure_of_text(const std::string& text);         // "mse", "l1", "huber", "norm"; throws Error{argument}

// What an atom counts in the force loss: 1, 1 / sqrt(N) or 1 / N in a frame of N atoms. With 1 / N all frames count the
// same.
enum class ForceWeighting { atoms, root, frames };
ForceWeighting force_weighting_of_text(const std::string& text);  // "atoms", "root", "frames"; throws Error{argument}
double force_weight_of_atom(ForceWeighting weighting, int64_t atoms_of_frame);

struct LossRule {
    Measure energy = Measure::huber, force = Measure::huber;
    double energy_delta = 0.01;  // eV/atom, where the Huber loss changes from squared to linear
    double force_delta = 0.1;    // eV/angstrom
    ForceWeighting weighting = ForceWeighting::atoms;
};

// Sums over frames, force components (atoms for `length`) and stress components; zero for padding. That over forces is
// weighted.
struct LossSums {
    at::Tensor energy, force, stress;  // scalars; stress is undefined if no frame has one
};

struct Prediction {
    at::Tensor energy;  // [frames + 1][1]
    at::Tensor force;   // [atoms][3]
    at::Tensor stress;  // [frames + 1][9], zero where not labelled; undefined if the batch has none
};
Prediction predict(const Parameters& parameters, const Batch& batch, bool differentiable);

LossSums loss_sums(const LossRule& rule, const Batch& batch, const Prediction& prediction);

// The same measure for one number, for errors collected on the host.
double measured(Measure measure, double difference, double delta);

}  // namespace mlff::train
