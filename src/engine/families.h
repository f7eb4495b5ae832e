// SPDX-License-Identifier: MIT
// The table of model families for load_model(). To add a family, add a row in families.cpp.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "potential/model.h"

namespace mlff {

struct ModelFamily {
    // Models that have a name instead of a file, such as "builtin".
    bool (*has_name)(const std::string& name);
    std::shared_ptr<Model> (*make_named)(const std::string& name);
    // Returns nullptr if the file belongs to another family. The pointer is nullptr if the family has no files.
    std::shared_ptr<Model> (*open_file)(const std::string& path);
};

// In the order in which load_model() tries them. The last one tries to read any file, and its error says what is wrong.
std::span<const ModelFamily> model_families();

}  // namespace mlff
