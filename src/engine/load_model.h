// SPDX-License-Identifier: MIT
// Loads models of any family by name or path.
#pragma once

#include <memory>
#include <string>

#include "potential/model.h"

namespace mlff {

// `name` is one of
//   "builtin"       the embedded student
//   "analytic", "zbl"
//   "self-test"     a small MACE model with seeded weights
//   "python:..."    see python_models/model_name.h
//   a path, or the name of a model in the model cache
//   several of these with '+' between them: their sum
//   several of these or of sums with ',' between them, or a file that lists them: a committee
// Throws Error.
std::shared_ptr<const Model> load_model(const std::string& name);
// One model, neither a sum nor a committee, without the trust meter in the file beside it.
std::shared_ptr<const Model> load_without_meter(const std::string& name);

}  // namespace mlff
