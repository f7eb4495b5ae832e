// SPDX-License-Identifier: MIT
// mlff's model container: a safetensors file whose metadata hold the module tree.
//
//   metadata "format"      = "mlff"
//   metadata "mlff_layout" = "1"
//   metadata "mlff_module" = JSON of the root: {"class", "attributes",
//                            "tensors": [[name, "parameter" | "buffer"], ...], "children": [[name, {...}], ...]}
//   tensors                  by dotted path, "interactions.0.linear.weight"
//
// Conversion from a torch file drops only strides, hooks and code; these do not affect results.
#pragma once

#include <string>

#include "formats/module_tree.h"
#include "formats/safetensors.h"

namespace mlff {

Safetensors pack_module(const Module& root);
// Throws Error{format | unsupported}, also for a safetensors file without mlff's metadata or with a later layout.
Module unpack_module(const Safetensors& contents, const std::string& name_for_errors);

}  // namespace mlff
