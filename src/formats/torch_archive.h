// SPDX-License-Identifier: MIT
// Reads files written by torch.save and torch.jit.save as data. Never runs code from them.
#pragma once

#include <memory>
#include <string>

#include "core/mapped_file.h"
#include "formats/module_tree.h"

namespace mlff {

// `bytes` must stay valid while the tensors of the tree are used; other allocations are added to `memory`. Throws
// Error{format} if the file is damaged, and Error{unsupported} if it contains neither a module nor a checkpoint of
// SevenNet (but, say, a bare state dict).
ModuleFile read_torch_archive(Bytes bytes, const std::string& path);

}  // namespace mlff
