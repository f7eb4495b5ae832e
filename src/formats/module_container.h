// SPDX-License-Identifier: MIT
// Our own model container: a safetensors file whose metadata hold the module tree.
//
//   metadata "format"      = "mlff"
//   metadata "mlff_layout" = "1"
//   metadata "mlff_module" = JSON of the root: {"class", "attributes", "tensors": [[name, "parameter" | "buffer"],
//   ...],
//                            "children": [[name, {...}], ...]}
//   tensors                  by dotted path, "interactions.0.linear.weight"
//
// Nothing is lost on the way from a torch file but strides, hooks and code, which carry no numbers.
#pragma once

#include <string>

#include "formats/module_tree.h"
#include "formats/safetensors.h"

namespace mlff {

Safetensors pack_module(const Module& root);
// Throws Error{format | unsupported}: a safetensors file without our metadata, or of a later layout.
Module unpack_module(const Safetensors& contents, const std::string& name_for_errors);

}  // namespace mlff
