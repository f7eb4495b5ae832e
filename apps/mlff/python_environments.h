// SPDX-License-Identifier: MIT
// Python environments that models may run in, each tried by really importing what it has.
#pragma once

#include <map>
#include <string>

namespace mlff::app {

struct PythonEnvironment {
    std::string folder;
    std::string version;                        // of Python; "" if it cannot be run
    std::string why_not;                        // "" if it can
    std::map<std::string, std::string> works;   // "mace" -> "0.3.16"
    std::map<std::string, std::string> broken;  // what is there but fails when it is imported -> why
    // "triton" -> "3.1.0": of cupy and triton those that are there. They are not imported: that takes long, and may
    // fail where there is no GPU.
    std::map<std::string, std::string> gpu_packages;
    std::string gpu_package(const std::string& name) const {
        const auto found = gpu_packages.find(name);
        return found == gpu_packages.end() ? "" : found->second;
    }
};

PythonEnvironment try_python_environment(const std::string& folder, double seconds);

}  // namespace mlff::app
