// SPDX-License-Identifier: MIT
// Are the numbers right here: this model, this machine, this device, this precision? Everything is computed again in
// another way, or compared with what is known; docs/verification.md has the list.
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

// How far results may be from the truth at a precision: numbers for max(1, largest number of that kind); of energies,
// what binds an atom counts.
struct Bounds {
    double energy_per_atom = 0, forces = 0, virial = 0;
};
Bounds bounds_of(Precision precision);

struct Verification {
    std::string device, precision, head;
    std::string published;  // name of the released model, "" if nothing is published of it
    std::vector<Check> checks;
    std::vector<std::string> left_out;  // checks that make no sense here, and why

    bool is_passed() const;
};

// `sha256` of the model's file, "" if there is none. `on_check`, unless empty, is called with the name of what comes
// next. Throws Error as sessions do.
Verification verify_model(const std::shared_ptr<const Model>& model, const SessionOptions& options,
                          const std::string& sha256, const std::function<void(const std::string&)>& on_check = {});

nlohmann::json verification_json(const Verification& verification);

}  // namespace mlff::verify
