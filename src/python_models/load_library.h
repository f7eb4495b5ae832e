// SPDX-License-Identifier: MIT
// Loads libmlff_python.so, for libmlff and for mlff-python-host.
#pragma once

#include <dlfcn.h>

#include <filesystem>

#include "core/error.h"
#include "python_models/interface.h"

namespace mlff::python {

// Never unloads the library, because Python cannot be unloaded.
inline const Interface* load_interface(const std::filesystem::path& library) {
    void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        const char* reason = dlerror();
        fail(Status::unsupported, "cannot load libmlff_python.so: ", reason ? reason : library.string(),
             " (if a libpython is missing, install that package)");
    }
    auto* function = reinterpret_cast<InterfaceFunction*>(dlsym(handle, kInterfaceSymbol));
    if (!function) fail(Status::unsupported, library.string(), " is not mlff's Python library");
    const Interface* interface = function();
    if (interface->version != kInterfaceVersion)
        fail(Status::unsupported, library.string(), " belongs to another version of mlff: it has interface version ",
             interface->version, ", expected ", kInterfaceVersion);
    return interface;
}

}  // namespace mlff::python
