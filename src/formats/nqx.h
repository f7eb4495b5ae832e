// SPDX-License-Identifier: MIT
// Model files of Nequix (.nqx): one line of JSON, then arrays in numpy's format (.npy) one after another, without
// names. The settings in the JSON say which array is what.
#pragma once

#include <string>

#include "core/mapped_file.h"
#include "formats/module_tree.h"

namespace mlff {

inline constexpr std::string_view kNequixClass = "nequix.Nequix";

bool looks_like_nqx(Bytes bytes);

// The settings are the attribute "config". Tensors, with l the degree of the irrep that a block has:
//   atomic_energies, readout
//   layers.T.radial.K             T = 0 .. n_layers - 1, K = 0 .. radial_mlp_layers
//   layers.T.linear_1.l           each degree of the layer's input
//   layers.T.linear_2.l           each degree of its output that its messages reach
//   layers.T.skip.l               each degree of its output that its input has
//   layers.T.norm.l               each degree of its output, if layer_norm
// Keeps views of `bytes`. Throws Error{format | unsupported}; messages begin with `name_for_errors`.
Module read_nqx(Bytes bytes, const std::string& name_for_errors);

}  // namespace mlff
