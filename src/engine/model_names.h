// SPDX-License-Identifier: MIT
// The grammar of names that say several models: the members of a committee have ',' between them, and the terms of a
// sum, which each member may be, have '+'. What follows a ',' and is key=value belongs to the options of a term
// "family:..." before it, as in "X.model+d3:s8=0.7,a1=0.4,a2=4.4". Names of files that have such signs are not for
// these functions.
#pragma once

#include <string>
#include <vector>

namespace mlff {

// One or more; a member is "" if a ',' has none beside it.
std::vector<std::string> split_members(const std::string& name);
// One or more. Throws Error{argument} if a '+' has no term beside it.
std::vector<std::string> split_terms(const std::string& member);

// The name of a model with dispersion added to it, or to every member of a committee: "X.model" and "pbe:zero" give
// "X.model+d3:pbe:zero". Throws Error{argument} if there is one already, or if nothing can be added to the name.
std::string with_dispersion(const std::string& name, const std::string& dispersion);

}  // namespace mlff
