// SPDX-License-Identifier: MIT
// The model "zbl": the screened repulsion of nuclei (repulsion.h) for the first 96 elements, with their covalent radii.
// It binds nothing. It is meant as a term of sums such as "builtin+zbl", where it keeps atoms apart at distances that
// the other model was never trained on.
#pragma once

#include <memory>

#include "potential/model.h"

namespace mlff {

std::shared_ptr<Model> make_zbl_model();

}  // namespace mlff
