// SPDX-License-Identifier: MIT
// The learning curve of a run as a self-contained SVG file.
#pragma once

#include <string>
#include <vector>

#include "train/log.h"

namespace mlff::train {

void write_learning_curve(const std::string& path, const std::vector<TrainingRow>& training,
                          const std::vector<ValidationRow>& validation);

}  // namespace mlff::train
