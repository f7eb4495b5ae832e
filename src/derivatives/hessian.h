// SPDX-License-Identifier: MIT
// Second derivatives of the energy by the positions of atoms: central differences of forces, computed in batches.
#pragma once

#include <functional>

#include "engine/session.h"
#include "symmetry/force_constants.h"

namespace mlff {

struct HessianOptions {
    double step = 2e-4;  // angstrom
    // Of molecules: displacements that symmetry makes equal are computed once. Atoms may be this far from their
    // places in the symmetric structure, angstrom; 0: no symmetry is looked for.
    double symmetry_tolerance = 1e-6;
};

struct Hessian {
    std::vector<double> values;  // [3 atom_count][3 atom_count], eV/angstrom^2; symmetric
    double step = 0;             // angstrom
    // The largest difference from what a Hessian has by definition, before it was made symmetric: from symmetry, and
    // from rows whose sum over atoms is 0 (all atoms moved alike change no force).
    double asymmetry = 0, sum_rule_error = 0;  // eV/angstrom^2
    // The largest error of a finite step, from derivatives with twice the step of a few atoms.
    double step_error = 0;         // eV/angstrom^2
    bool is_extrapolated = false;  // it was too large: the values come from both steps, with its leading part removed
    int64_t evaluation_count = 0;  // of the whole system
    int64_t operation_count = 0;   // symmetry operations that were used; 1: none but the identity
};

// Told which part of the work is done, from 0 to 1; false: stop, which is an Error{system}.
using HessianProgress = std::function<bool(double part)>;

// Throws Error: {argument} for options, or a session whose precision is not fp64; others as Session::evaluate.
Hessian compute_hessian(Session& session, const SystemView& system, const HessianOptions& options = {},
                        const HessianProgress& progress = {});

// Forces of displaced copies of a system, as batches.
std::vector<DisplacedForces> forces_of_displaced(Session& session, const SystemView& system,
                                                 std::span<const Displacement> displacements,
                                                 const HessianProgress& progress = {});

}  // namespace mlff
