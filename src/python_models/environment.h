// SPDX-License-Identifier: MIT
// Where things are that Python models need: the environment (a folder as `python3 -m venv` makes it), libmlff_python.so
// and the program that hosts it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "python_models/model_name.h"

namespace mlff::python {

// The environment of a model: env= of its name, else $MLFF_PYTHON_ENV, else the one that scripts/install made for it,
// else $VIRTUAL_ENV. env= and $MLFF_PYTHON_ENV are paths, or names of installed ones. Throws Error{unsupported} that
// says where it looked.
std::filesystem::path find_environment(const ModelName& model);

// All that find_environment() would take without being given a name, in that order and each once: what `mlff doctor`
// tries.
std::vector<std::filesystem::path> known_environments();

// $MLFF_PYTHON_LIBRARY, or from where libmlff is. Throws Error{unsupported} if this mlff has none.
std::filesystem::path find_python_library();
std::filesystem::path find_host_program();  // beside it, or in libexec

// PREFIX/share/mlff/python, where scripts/install puts environments; a folder for each name.
std::filesystem::path installed_environments();

}  // namespace mlff::python
