// SPDX-License-Identifier: MIT
// Files written by torch.save and torch.jit.save, read as data. No code in them is run or even looked at.
#pragma once

#include <memory>
#include <string>

#include "core/mapped_file.h"
#include "formats/module_tree.h"

namespace mlff {

// `bytes` must stay alive as long as the tensors of the tree are used; what is allocated beside it is added to
// `memory`. Throws Error{format} if the file is damaged and Error{unsupported} if it holds no module (a bare state
// dict, say).
ModuleFile read_torch_archive(Bytes bytes, const std::string& path);

}  // namespace mlff
