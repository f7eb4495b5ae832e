// SPDX-License-Identifier: MIT
// The source of energies and forces for dynamics and minimisers: a session (session_forces.h), or a function in a test.
#pragma once

#include <cstdint>

#include "core/error.h"
#include "core/system_view.h"
#include "potential/outputs.h"

namespace mlff {

class ForceProvider {
public:
    virtual ~ForceProvider() = default;
    // Returns the energy, eV. Writes forces [atom][3], eV/angstrom, and the virial [3][3] = -dE/dstrain, eV, unless it
    // is nullptr.
    virtual double compute(const SystemView& system, double* forces, double* virial) = 0;
    // The same, and what the trust meter of the model says. Throws Error{unsupported} if there is none.
    virtual double compute_with_trust(const SystemView& system, double* forces, double* virial, TrustReading& trust) {
        (void)system, (void)forces, (void)virial, (void)trust;
        fail(Status::unsupported, "expected errors were asked for, but these forces have no trust meter");
    }
    // Incremented by every neighbour search. Where searches happen decides the last bits of the results that follow.
    virtual int64_t search_count() const { return 0; }
};

}  // namespace mlff
