// SPDX-License-Identifier: MIT
// The libraries of the NVIDIA driver, found by name when the program runs: none of them has to be there.
#pragma once

#include <string>

namespace mlff {

struct DriverLibraries {  // tests have their own
    std::string cuda = "libcuda.so.1";
    std::string nvml = "libnvidia-ml.so.1";
    std::string wsl_folder = "/usr/lib/wsl/lib";  // where WSL 2 keeps both; usually the loader knows of it
};

// Sees to it that the CUDA runtime, which asks for libcuda by its name, finds it where only WSL's folder has it: a
// library that is loaded already is found by its name. Does nothing elsewhere.
void load_driver_of_wsl(const DriverLibraries& libraries = {});

struct DriverFacts {
    std::string cuda_library;     // the file that libcuda was loaded from; "" if there is none
    std::string why_no_cuda;      // "" if it was loaded
    bool is_cuda_hidden = false;  // the loader does not find it by its name: it was found in WSL's folder
    int cuda_version = 0;         // the newest CUDA it serves, 13000 for 13.0; 0 if it does not say
    std::string nvml_library;     // the same for NVML
    std::string why_no_nvml;      // "" if it works; else that it is not there, or what it lacks
    std::string driver_version;   // "570.86.15", from NVML; "" if that does not say
};

DriverFacts probe_driver(const DriverLibraries& libraries = {});

}  // namespace mlff
