// SPDX-License-Identifier: MIT
// A PaiNN file as a Model.
#pragma once

#include <memory>
#include <string>

#include "formats/safetensors.h"
#include "potential/model.h"

namespace mlff {

// Whether it says that it is one.
bool is_painn_file(const Safetensors& file);
// Copies what it needs. Throws Error{format | unsupported}; messages begin with `name_for_errors`.
std::shared_ptr<Model> make_painn_model(const Safetensors& file, const std::string& name_for_errors);

}  // namespace mlff
