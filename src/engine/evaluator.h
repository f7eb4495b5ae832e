// SPDX-License-Identifier: MIT
// What every backend of every model implements: energies and their derivatives, given atoms and edges.
#pragma once

#include "core/system_view.h"
#include "core/threads.h"
#include "neighbors/neighbor_list.h"

namespace mlff {

// Where results go; nullptr = not wanted. The evaluator overwrites, it does not add.
struct Outputs {
    double* energy = nullptr;         // [1], eV
    double* forces = nullptr;         // [atom][3], eV/angstrom
    double* virial = nullptr;         // [3][3] = -dE/dstrain, eV; symmetric
    double* atom_energies = nullptr;  // [atom], eV
    double* atom_virials = nullptr;   // [atom][3][3], eV; their sum is the virial
};

// Scratch memory for one thread of the caller; made by Model::make_evaluator.
class Evaluator {
public:
    virtual ~Evaluator() = default;
    // `edges` is a full list with vectors and distances for the model's cutoff. Elements have been checked.
    virtual void evaluate(const SystemView& system, const Edges& edges, const Outputs& outputs, ThreadTeam& team) = 0;
};

}  // namespace mlff
