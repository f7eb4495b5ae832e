// SPDX-License-Identifier: MIT
// The course of a run as a picture: an SVG file without any outside parts.
#pragma once

#include <string>
#include <vector>

#include "train/log.h"

namespace mlff::train {

void write_learning_curve(const std::string& path, const std::vector<TrainingRow>& training,
                          const std::vector<ValidationRow>& validation);

}  // namespace mlff::train
