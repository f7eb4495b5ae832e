// SPDX-License-Identifier: MIT
// A folder of frames that wait for a label: DIR/frames.xyz, extended XYZ with the column sigma_forces. Frames are only
// ever added, by one run at a time. DIR/lock is empty.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "append_file.h"
#include "dynamics/surroundings.h"
#include "formats/extxyz.h"

namespace mlff::app {

class HarvestFolder {
public:
    // Makes the folder if need be, and reads the frames in it; half a frame at the end, of a run that was killed, is
    // cut off. Throws Error{file} if it cannot be written or another run has it, Error{format} for other files of that
    // name.
    explicit HarvestFolder(const std::string& path);
    ~HarvestFolder();
    HarvestFolder(const HarvestFolder&) = delete;
    HarvestFolder& operator=(const HarvestFolder&) = delete;

    // False, and nothing is written: what is around the atom with the largest error is like that of a frame in the
    // folder (dynamics/surroundings.h). `frame` has the column sigma_forces.
    bool add(const Frame& frame);
    void sync() { file_->sync(); }  // all frames are on disk
    int64_t frame_count() const { return static_cast<int64_t>(known_.size()); }

    static std::string frames_path(const std::string& folder) { return folder + "/frames.xyz"; }
    // The text of DIR/frames.xyz up to the last whole frame. Throws Error{file} if it cannot be read.
    static std::string whole_frames(const std::string& folder);

private:
    int lock_ = -1;
    std::vector<Surroundings> known_;
    std::optional<AppendFile> file_;
};

}  // namespace mlff::app
