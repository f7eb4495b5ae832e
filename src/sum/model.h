// SPDX-License-Identifier: MIT
// The sum of several models, each with its own cutoff. Energies, forces and virials are added.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "potential/model.h"

namespace mlff {

// `terms`: two or more. Heads, descriptors and precision are those of the first; elements are those that all terms
// know. Throws Error{argument} if the terms have no element in common, Error{unsupported} if a term cannot be in a sum:
// one whose reach is not known. The messages begin with `name`.
std::shared_ptr<const Model> make_sum_model(std::vector<std::shared_ptr<const Model>> terms, const std::string& name);

}  // namespace mlff
