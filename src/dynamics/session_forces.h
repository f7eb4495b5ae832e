// SPDX-License-Identifier: MIT
// Forces computed by a session.
#pragma once

#include "dynamics/force_provider.h"
#include "engine/session.h"

namespace mlff {

class SessionForces : public ForceProvider {
public:
    explicit SessionForces(Session& session) : session_(session) {}  // the session must outlive this
    double compute(const SystemView& system, double* forces, double* virial) override;
    int64_t search_count() const override { return session_.neighbor_build_count(); }

private:
    Session& session_;
};

}  // namespace mlff
