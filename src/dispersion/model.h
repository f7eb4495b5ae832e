// SPDX-License-Identifier: MIT
// The model "d3:...": the dispersion energy DFT-D3 (Grimme and co-workers), to be added to what a functional without
// dispersion, or a model trained on it, gives. docs/dispersion.md has the formulas.
//
//   d3:FUNCTIONAL[:bj|zero][:atm][:smooth]               d3:pbe, d3:r2scan:atm, d3:b3lyp:zero
//   d3:s8=...,a1=...,a2=...[,s6=...][:bj|zero]...        parameters by value (functionals.h)
#pragma once

#include <memory>
#include <string>

#include "potential/model.h"

namespace mlff {

bool is_dispersion_name(const std::string& name);
std::shared_ptr<Model> make_dispersion_model(const std::string& name);  // throws Error{argument}

}  // namespace mlff
