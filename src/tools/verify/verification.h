// SPDX-License-Identifier: MIT
// Verifies that results are correct for this model, machine, device and precision. Everything is computed a second time
// in another way, or compared with known results; docs/verification.md lists the checks.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "engine/session.h"
#include "tools/validate/check.h"

namespace mlff::verify {

using validate::Check;

// The allowed deviations at a precision, relative to max(1, largest number of that kind). For energies, relative to the
// binding energy of an atom.
struct Bounds {
    double energy_per_atom = 0, forces = 0, virial = 0;
};
Bounds bounds_of(Precision precision);

struct Verification {
    std::string device, precision, head;
    std::string published;  // name of the released model; "" if no results are published
    std::vector<Check> checks;
    std::vector<std::string> left_out;  // checks that do not apply here, and why

    bool is_passed() const;
};

// `sha256`: of the model's file, "" if there is none. `on_check`, unless empty, is called with the name of the next
// check. Throws Error like sessions.
Verification verify_model(const std::shared_ptr<const Model>& model, const SessionOptions& options,
                          const std::string& sha256, const std::function<void(const std::string&)>& on_check = {});

nlohmann::json verification_json(const Verification& verification);

}  // namespace mlff::verify
