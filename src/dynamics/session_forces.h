// SPDX-License-Identifier: MIT
// Forces computed by a session.
#pragma once

#include <vector>

#include "dynamics/force_provider.h"
#include "engine/session.h"

namespace mlff {

class SessionForces : public ForceProvider {
public:
    explicit SessionForces(Session& session) : session_(session) {}  // the session must outlive this
    double compute(const SystemView& system, double* forces, double* virial) override;
    double compute_with_trust(const SystemView& system, double* forces, double* virial, TrustReading& trust) override;
    int64_t search_count() const override { return session_.neighbor_build_count(); }

    bool has_spread() const { return session_.model().summary().member_count > 0; }
    // Of the last compute(), eV/angstrom: the largest standard deviation of a force over the members of a committee.
    double sigma_max_force() const { return sigma_max_force_; }

private:
    double compute(const SystemView& system, Results results);

    Session& session_;
    std::vector<double> expected_errors_, novelties_;  // [atom]; members, so that a step allocates no memory
    double sigma_max_force_ = 0;
};

}  // namespace mlff
