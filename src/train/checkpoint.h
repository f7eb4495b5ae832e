// SPDX-License-Identifier: MIT
// A run on disk: parameters, moments and averages as they are, bit for bit. The file is replaced only when it is
// complete.
#pragma once

#include <string>

#include "train/optimizer.h"
#include "train/trainer.h"

namespace mlff::train {

void write_checkpoint(const std::string& path, const TrainerOptions& options, const ElementTable& elements,
                      const TrainerState& state, const Optimizer& optimizer, const at::Tensor& best);
// Throws Error{file | format}, also if the run was started with another shape, seed, batch size or data.
TrainerState read_checkpoint(const std::string& path, const TrainerOptions& options, const ElementTable& elements,
                             Optimizer& optimizer, at::Tensor& best);

}  // namespace mlff::train
