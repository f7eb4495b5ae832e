// SPDX-License-Identifier: MIT
// A MACE file as a Model.
#pragma once

#include <memory>

#include "formats/module_tree.h"
#include "potential/model.h"

namespace mlff {

std::shared_ptr<Model> make_mace_model(ModuleFile file);

}  // namespace mlff
