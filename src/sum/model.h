// SPDX-License-Identifier: MIT
// The sum of several models, each with a cutoff of its own: energies, forces and virials add up.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "potential/model.h"

namespace mlff {

// `terms`: two or more. Heads, descriptors and precision are those of the first; elements are those that all know.
// Throws Error{argument} for terms that have no element in common or cannot be in a sum; `name` begins its messages.
std::shared_ptr<const Model> make_sum_model(std::vector<std::shared_ptr<const Model>> terms, const std::string& name);

}  // namespace mlff
