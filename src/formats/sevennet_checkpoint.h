// SPDX-License-Identifier: MIT
// Checkpoints of SevenNet: a pickled dict with the state dict "model_state_dict" and the settings "config".
#pragma once

#include <string>

#include "formats/module_builder.h"
#include "formats/module_tree.h"
#include "formats/pickle.h"
#include "formats/torch_storage.h"

namespace mlff {

inline constexpr std::string_view kSevenNetClass = "sevenn.Checkpoint";

bool is_sevennet_checkpoint(PickleValue root);

// The tensors of the state dict by their dotted names, and the attribute "config": its keys are text ("8" for 8), and
// objects are null (no setting that a model depends on is one). Nothing else of the dict is read, so the storages of
// the optimizer are not either. Throws Error{format | unsupported}, the latter for any class or function that
// checkpoints do not have.
Module build_sevennet_checkpoint(PickleValue root, TorchStorages& storages, ValueBudget& budget,
                                 const std::string& name_for_errors);

}  // namespace mlff
