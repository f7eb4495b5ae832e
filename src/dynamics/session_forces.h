// SPDX-License-Identifier: MIT
// Forces computed by a session.
#pragma once

#include "dynamics/force_provider.h"
#include "engine/session.h"

namespace mlff {

// Angstrom, for SessionOptions::neighbor_skin_on_cpu: gives a search every few tens of steps.
inline constexpr double kSkinOnCpu = 0.5;

class SessionForces : public ForceProvider {
public:
    explicit SessionForces(Session& session) : session_(session) {}  // the session must outlive this
    double compute(const SystemView& system, double* forces, double* virial) override;
    int64_t search_count() const override { return session_.neighbor_build_count(); }

private:
    Session& session_;
};

}  // namespace mlff
