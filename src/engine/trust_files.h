// SPDX-License-Identifier: MIT
// Trust meters in files: that of X.model is X.model.trust beside it.
#pragma once

#include <string>

#include "core/mapped_file.h"
#include "potential/model.h"

namespace mlff {

std::string trust_file_of(const std::string& model_path);

// Gives a model the meter in the file beside it, if there is one. Throws Error{format} if it cannot be read, or was
// fitted to another model file.
void add_trust_meter(Model& model, const std::string& model_path);

}  // namespace mlff
