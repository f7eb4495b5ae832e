// SPDX-License-Identifier: MIT
// What the files of the system say about it, and the traps that are known for such systems.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gpu/runtime/driver_library.h"

namespace mlff {

struct HostFacts {
    std::string distribution;                         // "Debian GNU/Linux 12 (bookworm)"; "" = not said
    std::string kernel;                               // "6.1.0-18-amd64"
    std::string processor;                            // "" where the kernel gives numbers only
    std::string processor_id;                         // these numbers, "implementer 0x41, part 0xd0c", or the name
    int wsl = 0;                                      // the version of the Windows Subsystem for Linux; 0 = none
    int64_t memory_bytes = 0, free_memory_bytes = 0;  // 0 = not said
    bool has_wsl_driver = false;                      // Windows offers its libcuda
};

// `root`: the folder that /proc, /etc and /usr are in; tests have one of their own. `has_wsl_interop`: whether the
// environment has WSL_INTEROP, as it has under WSL 2 with any kernel.
HostFacts read_host_facts(const std::string& root = "", bool has_wsl_interop = false);

// Bytes of host memory that a process could still take: what the kernel calls available, or less where a control group
// (a container, a batch job) has a limit. What such a group holds of files that nobody uses counts as free. 0 = not
// said; at least 1 otherwise.
int64_t available_memory(const std::string& root = "");

struct Trap {
    std::string name, problem, advice;
    std::string instead;  // what mlff does about it itself
};

struct CudaBuild {
    int runtime_version = 0;  // of the CUDA in this build; 0 = none
};

std::vector<Trap> known_traps(const HostFacts& host, const DriverFacts& driver, const CudaBuild& build);

std::string cuda_version_text(int version);  // "13.0" for 13000

}  // namespace mlff
