// SPDX-License-Identifier: MIT
// The short-range repulsion of docs/painn.md. It is not trained; it is subtracted from the labels.
#pragma once

namespace mlff::train {

struct PairTerm {
    double energy = 0, slope = 0;  // eV, eV/angstrom; of the pair, both directions together
};
PairTerm repulsion(int atomic_number_a, int atomic_number_b, double radius_sum, double distance);

}  // namespace mlff::train
