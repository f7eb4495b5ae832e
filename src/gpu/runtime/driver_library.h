// SPDX-License-Identifier: MIT
// Finds the libraries of the NVIDIA driver at run time. None of them is required.
#pragma once

#include <string>

namespace mlff {

struct DriverLibraries {  // tests use other names
    std::string cuda = "libcuda.so.1";
    std::string nvml = "libnvidia-ml.so.1";
    std::string wsl_folder = "/usr/lib/wsl/lib";  // where WSL 2 keeps both; usually in the loader's search path
};

// Lets the CUDA runtime find libcuda if only WSL's folder has it. The runtime looks it up by name, and finds a library
// of that name that is already loaded. Has no effect elsewhere.
void load_driver_of_wsl(const DriverLibraries& libraries = {});

struct DriverFacts {
    std::string cuda_library;     // path of the loaded libcuda; "" if there is none
    std::string why_no_cuda;      // the reason; "" if it was loaded
    bool is_cuda_hidden = false;  // found only in WSL's folder, not by the loader
    int cuda_version = 0;         // the newest CUDA it supports, 13000 for 13.0; 0 if unknown
    std::string nvml_library;     // the same for NVML
    std::string why_no_nvml;      // "" if it works; else why not
    std::string driver_version;   // "570.86.15", from NVML; "" if unknown
};

DriverFacts probe_driver(const DriverLibraries& libraries = {});

}  // namespace mlff
