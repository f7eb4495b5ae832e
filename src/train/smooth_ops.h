// SPDX-License-Identifier: MIT
// Operations whose first and second derivatives are written out. Forces are a derivative of the energy and the loss is
// a function of forces, so everything is differentiated twice; left to itself LibTorch would make several times as many
// kernels of it.
#pragma once

#include "train/torch_headers.h"

namespace mlff::train {

// x * sigmoid(x)
at::Tensor silu(const at::Tensor& x);

// sum + a * b, a and b broadcast to the shape of sum.
at::Tensor multiply_add(const at::Tensor& sum, const at::Tensor& a, const at::Tensor& b);

}  // namespace mlff::train
