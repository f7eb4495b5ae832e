// SPDX-License-Identifier: MIT
// Where dynamics and minimisers get energies and forces from: a session, or a few lines of a test.
#pragma once

#include <cstdint>

#include "core/system_view.h"
#include "engine/session.h"

namespace mlff {

class ForceProvider {
public:
    virtual ~ForceProvider() = default;
    // The energy, eV. Writes forces [atom][3], eV/angstrom, and, unless it is nullptr, the virial [3][3] = -dE/dstrain, eV.
    virtual double compute(const SystemView& system, double* forces, double* virial) = 0;
    // Grows when neighbours were searched anew. Where that was decides the last bits of results until the next search.
    virtual int64_t search_count() const { return 0; }
};

class SessionForces : public ForceProvider {
public:
    explicit SessionForces(Session& session) : session_(session) {}  // which must outlive this

    double compute(const SystemView& system, double* forces, double* virial) override {
        double energy = 0;
        Results results;
        results.outputs.energy = &energy;
        results.outputs.forces = forces;
        results.outputs.virial = virial;
        session_.evaluate({&system, 1}, {&results, 1});
        return energy;
    }
    int64_t search_count() const override { return session_.neighbor_build_count(); }

private:
    Session& session_;
};

}  // namespace mlff
