// SPDX-License-Identifier: MIT
// Python environments that models may run in, each tried by really importing what it has.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace mlff::app {

struct PythonEnvironment {
    std::string folder;
    std::string version;              // of Python; "" if it cannot be run
    std::string why_not;              // "" if it can
    std::map<std::string, std::string> works;   // "mace" -> "0.3.16"
    std::map<std::string, std::string> broken;  // what is there but fails when it is imported -> why
};

// Folders with bin/python3: those of `installed` (PREFIX/share/mlff/python, where scripts/install puts them), $MLFF_PYTHON_ENV, $VIRTUAL_ENV.
std::vector<std::string> find_python_environments(const std::string& installed);
std::string installed_python_folder();  // beside the program that runs

PythonEnvironment try_python_environment(const std::string& folder, double seconds);

}  // namespace mlff::app
