// SPDX-License-Identifier: MIT
// Converts a system to the form of the Python interface.
#pragma once

#include "core/system_view.h"
#include "python_models/interface.h"

namespace mlff::python {

inline SystemArrays system_arrays(const SystemView& system) {
    SystemArrays arrays{};
    arrays.atom_count = system.atom_count;
    arrays.atomic_numbers = system.atomic_numbers;
    arrays.positions = system.positions;
    for (size_t k = 0; k < 9; ++k) arrays.cell[k] = system.cell[k / 3][k % 3];
    for (size_t k = 0; k < 3; ++k) arrays.periodic[k] = system.periodic[k];
    arrays.total_charge = system.total_charge;
    arrays.spin_multiplicity = system.spin_multiplicity;
    return arrays;
}

}  // namespace mlff::python
