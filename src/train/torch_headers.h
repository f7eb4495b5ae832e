// SPDX-License-Identifier: MIT
// The part of LibTorch that the trainer uses: tensors and autograd. torch/torch.h would also include modules, data
// loaders and serialisation, and take several times as long to compile.
#pragma once

#include <torch/autograd.h>
#include <torch/cuda.h>
#include <torch/types.h>
