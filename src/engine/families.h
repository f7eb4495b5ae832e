// SPDX-License-Identifier: MIT
// The families of models that load_model() knows, one row each. A new family is a folder with its Model, and a row in
// families.cpp.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "potential/model.h"

namespace mlff {

struct ModelFamily {
    // Whether a name, not a file, stands for a model of the family, and that model.
    bool (*has_name)(const std::string& name);
    std::shared_ptr<const Model> (*make_named)(const std::string& name);
    // The model in a file; nullptr if the file is of another family. nullptr: the family has no files.
    std::shared_ptr<const Model> (*open_file)(const std::string& path);
};

// In the order in which they are asked. The last takes any file, and says what is wrong with it.
std::span<const ModelFamily> model_families();

}  // namespace mlff
