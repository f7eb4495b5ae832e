// SPDX-License-Identifier: MIT
// Names of committees: "a.model,b.model,c.model".
#pragma once

#include <string>
#include <vector>

namespace mlff {

// The members, if there are two or more and there is no file of that name; otherwise none. A member is the name of a
// model or a sum; "" if a comma has none beside it. Text such as "a1=0.4" after a comma belongs to a name with options
// before it: "d3:s8=0.7,a1=0.4" is one name.
std::vector<std::string> committee_members(const std::string& name);
inline bool is_committee_name(const std::string& name) { return !committee_members(name).empty(); }

}  // namespace mlff
