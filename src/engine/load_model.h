// SPDX-License-Identifier: MIT
// Models by name, whatever family they are of.
#pragma once

#include <memory>
#include <string>

#include "potential/model.h"

namespace mlff {

// "builtin" (the embedded student), "analytic", "self-test" (a small MACE model with seeded weights), "python:..."
// (python_models/model_name.h), "zbl", a path, the name of a model in the model cache, or several of these with '+'
// between them: their sum. Throws Error.
std::shared_ptr<const Model> load_model(const std::string& name);

}  // namespace mlff
