// SPDX-License-Identifier: MIT
// In place of h5md.cpp where HDF5 was not there when mlff was built.
#include "core/error.h"
#include "trajectory.h"

namespace mlff::app {

std::unique_ptr<TrajectoryFile> open_h5md(const std::string& path, const Particles&, std::optional<uint64_t>) {
    fail(Status::unsupported, path, ": this mlff was built without HDF5 and cannot write H5MD; choose a name that ends in .xyz, or build it with libhdf5-dev installed");
}

}  // namespace mlff::app
