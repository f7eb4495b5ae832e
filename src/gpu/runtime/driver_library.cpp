// SPDX-License-Identifier: MIT
#include "gpu/runtime/driver_library.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <array>

namespace mlff {
namespace {

struct OpenedLibrary {
    void* handle = nullptr;
    std::string path, why_not;
    bool is_hidden = false;
};

// Looks for the library by name, then in WSL's folder. Driver libraries stay loaded: some do not survive unloading.
OpenedLibrary open_driver_library(const std::string& name, const std::string& wsl_folder) {
    OpenedLibrary library;
    library.handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library.handle) {
        const char* why = dlerror();
        library.why_not = why ? why : "it cannot be loaded";
        const std::string in_wsl = wsl_folder + "/" + name;
        if (access(in_wsl.c_str(), R_OK) != 0) return library;
        library.handle = dlopen(in_wsl.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (!library.handle) {
            why = dlerror();
            library.why_not = why ? why : in_wsl + " cannot be loaded";
            return library;
        }
        library.why_not.clear();
        library.is_hidden = true;
    }
    link_map* map = nullptr;
    if (dlinfo(library.handle, RTLD_DI_LINKMAP, &map) == 0 && map && map->l_name) library.path = map->l_name;
    return library;
}

template <class Function>
Function symbol(const OpenedLibrary& library, const char* name) {
    return reinterpret_cast<Function>(dlsym(library.handle, name));
}

void ask_nvml(const OpenedLibrary& library, DriverFacts& facts) {
    const auto begin = symbol<int (*)()>(library, "nvmlInit_v2");
    const auto end = symbol<int (*)()>(library, "nvmlShutdown");
    const auto version = symbol<int (*)(char*, unsigned)>(library, "nvmlSystemGetDriverVersion");
    if (!begin || !end || !version) {
        facts.why_no_nvml = std::string("it is incomplete: no ") + (!begin ? "nvmlInit_v2"
                                                                    : !end ? "nvmlShutdown"
                                                                           : "nvmlSystemGetDriverVersion");
        return;
    }
    if (const int status = begin(); status != 0) {
        facts.why_no_nvml = "nvmlInit fails with status " + std::to_string(status);
        return;
    }
    std::array<char, 96> text{};
    if (const int status = version(text.data(), static_cast<unsigned>(text.size() - 1)); status == 0)
        facts.driver_version = text.data();
    else
        facts.why_no_nvml = "nvmlSystemGetDriverVersion fails with status " + std::to_string(status);
    end();
}

}  // namespace

void load_driver_of_wsl(const DriverLibraries& libraries) {
    if (access((libraries.wsl_folder + "/" + libraries.cuda).c_str(), R_OK) == 0)
        open_driver_library(libraries.cuda, libraries.wsl_folder);
}

DriverFacts probe_driver(const DriverLibraries& libraries) {
    DriverFacts facts;
    const OpenedLibrary cuda = open_driver_library(libraries.cuda, libraries.wsl_folder);
    facts.cuda_library = cuda.path;
    facts.why_no_cuda = cuda.why_not;
    facts.is_cuda_hidden = cuda.is_hidden;
    if (cuda.handle) {
        const auto version = symbol<int (*)(int*)>(cuda, "cuDriverGetVersion");
        int found = 0;
        if (version && version(&found) == 0) facts.cuda_version = found;
    }
    const OpenedLibrary nvml = open_driver_library(libraries.nvml, libraries.wsl_folder);
    facts.nvml_library = nvml.path;
    facts.why_no_nvml = nvml.why_not;
    if (nvml.handle) ask_nvml(nvml, facts);
    return facts;
}

}  // namespace mlff
