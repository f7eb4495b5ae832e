// SPDX-License-Identifier: MIT
// Finds and loads the module that writes H5MD: beside the command, as in a build, or where it is installed.
#include <dlfcn.h>

#include <filesystem>

#include "core/error.h"
#include "trajectory.h"

namespace mlff::app {
namespace {

namespace fs = std::filesystem;

H5mdOpener* load_opener(const std::string& path) {
    std::error_code ignored;
    const fs::path here = fs::read_symlink("/proc/self/exe", ignored).parent_path();
    for (const fs::path& place : {here / "mlff_h5md.so", here / MLFF_MODULE_DIR / "mlff_h5md.so"}) {
        if (!fs::exists(place, ignored)) continue;
        void* module = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (!module)
            fail(Status::unsupported, path, ": H5MD needs the HDF5 library, which cannot be loaded (", dlerror(),
                 "); install it or choose a name that ends in .xyz");
        if (void* symbol = dlsym(module, "mlff_open_h5md")) return reinterpret_cast<H5mdOpener*>(symbol);
        fail(Status::unsupported, path, ": ", place.string(), " is not a module of mlff");
    }
    fail(Status::unsupported, path,
         ": this mlff was built without HDF5 and cannot write H5MD; choose a name that ends in .xyz, or build it with "
         "libhdf5-dev installed");
}

}  // namespace

std::unique_ptr<TrajectoryFile> open_h5md(const std::string& path, const Particles& atoms,
                                          std::optional<uint64_t> go_on_at) {
    static H5mdOpener* const opener = load_opener(path);
    return std::unique_ptr<TrajectoryFile>(opener(path, atoms, go_on_at));
}

}  // namespace mlff::app
