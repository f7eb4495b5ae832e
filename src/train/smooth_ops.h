// SPDX-License-Identifier: MIT
// Operations with explicit first and second derivatives. Forces are derivatives of the energy and the loss depends on
// forces, so everything is differentiated twice. LibTorch's automatic derivatives would launch several times as many
// kernels.
#pragma once

#include "train/torch_headers.h"

namespace mlff::train {

// x * sigmoid(x)
at::Tensor silu(const at::Tensor& x);

// sum + a * b, a and b broadcast to the shape of sum.
at::Tensor multiply_add(const at::Tensor& sum, const at::Tensor& a, const at::Tensor& b);

}  // namespace mlff::train
