// SPDX-License-Identifier: MIT
// Forces computed by a session.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "dynamics/force_provider.h"
#include "dynamics/watcher.h"
#include "engine/session.h"

namespace mlff {

class SessionForces : public ForceProvider {
public:
    // The session must outlive this. With `outside_sigma` (eV/angstrom, see read_spread()) forces are watched, which
    // needs a model that has a spread or a trust meter.
    explicit SessionForces(Session& session, std::optional<double> outside_sigma = {})
        : session_(session), outside_sigma_(outside_sigma) {}
    double compute(const SystemView& system, double* forces, double* virial) override;
    double compute_with_trust(const SystemView& system, double* forces, double* virial, TrustReading& trust) override;
    int64_t search_count() const override { return session_.neighbor_build_count(); }

    bool are_watched() const { return outside_sigma_.has_value(); }
    // Of the last compute(), if forces are watched.
    const WatchReading& reading() const { return reading_; }
    std::span<const double> sigma_forces() const { return sigma_forces_; }  // [atom], eV/angstrom

private:
    bool has_meter() const;
    double compute(const SystemView& system, double* forces, double* virial, bool watches);

    Session& session_;
    std::optional<double> outside_sigma_;
    WatchReading reading_;
    std::vector<double> sigma_forces_;  // of a model with a meter, expected errors
    std::vector<double> novelties_;     // [atom], of a model with a meter
};

// Whether its results say how far they may be trusted.
bool can_be_watched(const Session& session);

}  // namespace mlff
