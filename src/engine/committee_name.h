// SPDX-License-Identifier: MIT
// Names of committees: "a.model,b.model,c.model".
#pragma once

#include <string>
#include <vector>

namespace mlff {

// The members, if there are two or more and there is no file of that name; otherwise none. A member is the name of a
// model or a sum (model_names.h); "" if a comma has none beside it.
std::vector<std::string> committee_members(const std::string& name);
inline bool is_committee_name(const std::string& name) { return !committee_members(name).empty(); }

}  // namespace mlff
