// SPDX-License-Identifier: MIT
// A committee: several models whose weighted mean is the result, and whose spread says how far they agree.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "potential/model.h"

namespace mlff {

struct CommitteeMember {
    std::string name;
    std::shared_ptr<const Model> model;
    double weight = 1;  // finite and positive
};

// `members`: two or more. Heads, descriptors and precision are those of the first; the others use their heads of the
// same name, or their only head. Elements are those that all members know. Throws Error{argument} if they have no
// element in common, Error{unsupported} if a member cannot be one. The messages begin with `name`.
std::shared_ptr<const Model> make_committee_model(const std::vector<CommitteeMember>& members, const std::string& name);

}  // namespace mlff
