// SPDX-License-Identifier: MIT
// A Python program as a Model: mace-torch or an ASE calculator (python_models/model_name.h).
#pragma once

#include <memory>
#include <string>

#include "potential/model.h"

namespace mlff {

std::shared_ptr<Model> make_python_model(const std::string& name);

}  // namespace mlff
