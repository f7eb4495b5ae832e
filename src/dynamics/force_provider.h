// SPDX-License-Identifier: MIT
// The source of energies and forces for dynamics and minimisers: a session (session_forces.h), or a function in a test.
#pragma once

#include <cstdint>

#include "core/system_view.h"

namespace mlff {

class ForceProvider {
public:
    virtual ~ForceProvider() = default;
    // Returns the energy, eV. Writes forces [atom][3], eV/angstrom, and the virial [3][3] = -dE/dstrain, eV, unless it
    // is nullptr.
    virtual double compute(const SystemView& system, double* forces, double* virial) = 0;
    // Incremented by every neighbour search. Where searches happen decides the last bits of the results that follow.
    virtual int64_t search_count() const { return 0; }
};

}  // namespace mlff
