// SPDX-License-Identifier: MIT
// Reads and writes model files as defined in docs/painn.md.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "train/model.h"

namespace mlff::train {

struct StoredModel {
    ModelShape shape;
    ElementTable elements;
    at::Tensor parameters;  // flat, on the CPU, in the order of parameter_layout; double, so that
                            // files of either precision keep their bits
    nlohmann::json card;
};

void write_model(const std::string& path, const StoredModel& model);  // weights as float32
StoredModel read_model(const std::string& path);                      // throws Error{file | format}

}  // namespace mlff::train
