// SPDX-License-Identifier: MIT
// What the trainer uses of LibTorch: tensors and autograd. torch/torch.h would bring modules, data loaders and
// serialization too, at several times the compile time.
#pragma once

#include <torch/autograd.h>
#include <torch/cuda.h>
#include <torch/types.h>
