// SPDX-License-Identifier: MIT
// Where dynamics and minimisers get energies and forces from: a session (session_forces.h), or a few lines of a test.
#pragma once

#include <cstdint>

#include "core/system_view.h"

namespace mlff {

class ForceProvider {
public:
    virtual ~ForceProvider() = default;
    // The energy, eV. Writes forces [atom][3], eV/angstrom, and, unless it is nullptr, the virial [3][3] = -dE/dstrain,
    // eV.
    virtual double compute(const SystemView& system, double* forces, double* virial) = 0;
    // Grows when neighbours were searched anew. Where that was decides the last bits of results until the next search.
    virtual int64_t search_count() const { return 0; }
};

}  // namespace mlff
