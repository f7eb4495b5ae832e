// SPDX-License-Identifier: MIT
// Facts about the system, read from its files, and known problems of such systems.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gpu/runtime/driver_library.h"

namespace mlff {

struct HostFacts {
    std::string distribution;                         // "Debian GNU/Linux 12 (bookworm)"; "" = unknown
    std::string kernel;                               // "6.1.0-18-amd64"
    std::string processor;                            // "" if the kernel reports only numbers
    std::string processor_id;                         // those numbers ("implementer 0x41, part 0xd0c"), or the name
    int wsl = 0;                                      // version of the Windows Subsystem for Linux; 0 = none
    int64_t memory_bytes = 0, free_memory_bytes = 0;  // 0 = unknown
    bool has_wsl_driver = false;                      // Windows provides its libcuda
};

// `root`: the folder that contains /proc, /etc and /usr; tests use their own. `has_wsl_interop`: whether WSL_INTEROP is
// set in the environment, as under WSL 2 with any kernel.
HostFacts read_host_facts(const std::string& root = "", bool has_wsl_interop = false);

// Host memory still available to this process, in bytes: the kernel's estimate, or less if a control group (a
// container, a batch job) has a limit. A group's inactive file cache counts as free. 0 = unknown; otherwise at least 1.
int64_t available_memory(const std::string& root = "");
// Host memory that this process could have if no other used any: that of the machine, or the limit of a control group.
// 0 = unknown.
int64_t whole_memory(const std::string& root = "");

struct Trap {
    std::string name, problem, advice;
    std::string instead;  // what mlff does in this case
};

struct CudaBuild {
    int runtime_version = 0;  // CUDA version of this build; 0 = none
};

std::vector<Trap> known_traps(const HostFacts& host, const DriverFacts& driver, const CudaBuild& build);

std::string cuda_version_text(int version);  // "13.0" for 13000

}  // namespace mlff
