// SPDX-License-Identifier: MIT
// The short-range repulsion of docs/painn.md. It has no trained numbers: labels are used without it.
#pragma once

namespace mlff::train {

struct PairTerm {
    double energy = 0, slope = 0;  // eV, eV/angstrom; of the pair, both ways together
};
PairTerm repulsion(int atomic_number_a, int atomic_number_b, double radius_sum, double distance);

}  // namespace mlff::train
