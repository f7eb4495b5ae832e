// SPDX-License-Identifier: MIT
// Locates what Python models need: the environment (a folder as created by `python3 -m venv`), libmlff_python.so, and
// the program mlff-python-host.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "python_models/model_name.h"

namespace mlff::python {

// The environment of a model: env= in its name, else $MLFF_PYTHON_ENV, else the one that scripts/install created for
// it, else $VIRTUAL_ENV. env= and $MLFF_PYTHON_ENV are paths, or names of installed environments. Throws
// Error{unsupported} that lists where it looked.
std::filesystem::path find_environment(const ModelName& model);

// All environments that find_environment() would try without a name, in that order and without duplicates. `mlff
// doctor` tries these.
std::vector<std::filesystem::path> known_environments();

// $MLFF_PYTHON_LIBRARY, or relative to libmlff. Throws Error{unsupported} if there is none.
std::filesystem::path find_python_library();
std::filesystem::path find_host_program();  // next to that library, or in libexec

// Where scripts/install puts environments, one folder per name, in the order of the search: share/mlff/python of the
// installation that this library belongs to, of ~/.local and of /usr/local. The scripts have the same list
// (environment_folders in scripts/common.sh).
std::vector<std::filesystem::path> environment_folders();

}  // namespace mlff::python
