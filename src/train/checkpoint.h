// SPDX-License-Identifier: MIT
// Checkpoints of a training run: parameters, moments and averages, bit for bit. The file is replaced only when the new
// one is complete.
#pragma once

#include <string>

#include "train/optimizer.h"
#include "train/trainer.h"

namespace mlff::train {

void write_checkpoint(const std::string& path, const TrainerOptions& options, const ElementTable& elements,
                      const TrainerState& state, const Optimizer& optimizer, const at::Tensor& best);
// Throws Error{file | format}, also if the run was started with a different shape, seed, batch size or data.
TrainerState read_checkpoint(const std::string& path, const TrainerOptions& options, const ElementTable& elements,
                             Optimizer& optimizer, at::Tensor& best);

}  // namespace mlff::train
