// SPDX-License-Identifier: MIT
// Models of the NequIP family from files: SevenNet's checkpoints and Nequix'.
#pragma once

#include <memory>

#include "formats/module_tree.h"
#include "potential/model.h"

namespace mlff {

// Whether make_nequip_model() is for this file. Others are left to other families.
bool is_nequip_file(const ModuleFile& file);
std::shared_ptr<Model> make_nequip_model(ModuleFile file);

}  // namespace mlff
