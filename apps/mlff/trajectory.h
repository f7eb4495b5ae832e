// SPDX-License-Identifier: MIT
// Files of frames of dynamics: extended XYZ, or H5MD (https://www.nongnu.org/h5md), by the ending of the name.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dynamics/particles.h"
#include "dynamics/snapshot.h"
#include "formats/extxyz.h"

namespace mlff::app {

class TrajectoryFile {
public:
    virtual ~TrajectoryFile() = default;
    virtual void write(const Snapshot& snapshot) = 0;  // throws Error{file}
    virtual uint64_t flush() = 0;                      // all frames are on disk; the place to go on from
};

// Begins a file or, given a place, goes on there and forgets frames that come after it. Frames of extended XYZ name the
// head of the model unless it is "". Throws Error{argument} for an ending that is neither.
std::unique_ptr<TrajectoryFile> open_trajectory(const std::string& path, const Particles& atoms,
                                                std::optional<uint64_t> go_on_at, const std::string& head = "");
std::unique_ptr<TrajectoryFile> open_h5md(const std::string& path, const Particles& atoms,
                                          std::optional<uint64_t> go_on_at);
using H5mdOpener = TrajectoryFile*(const std::string& path, const Particles& atoms,
                                   std::optional<uint64_t> go_on_at);  // in the module, mlff_open_h5md
void check_trajectory_name(const std::string& path);  // the part of open_trajectory() that needs no file

// As open_trajectory() writes it to extended XYZ.
Frame frame_of(const Snapshot& snapshot, const Particles& atoms, const std::string& head = "");

}  // namespace mlff::app
