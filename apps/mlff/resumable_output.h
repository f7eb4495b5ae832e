// SPDX-License-Identifier: MIT
// A file of frames in extended XYZ that appears under its name only when it is complete. Until then it is PATH.part,
// which a later run can go on with.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "append_file.h"
#include "formats/extxyz.h"

namespace mlff::app {

class ResumableOutput {
public:
    // Unless the run goes on, a PATH.part of an earlier run is refused: Error{argument}. Its last frame may be cut off;
    // it is forgotten then. A device or a pipe is written in place. Throws Error{file | format}.
    ResumableOutput(const std::string& path, bool goes_on);
    ~ResumableOutput();  // without commit(): removes PATH.part if it has no frame

    const std::string& part_path() const { return part_; }  // "" for a device
    // What is there of an earlier run: visits its frames in order.
    int64_t kept_count() const { return kept_count_; }
    class Kept {
    public:
        explicit Kept(const ResumableOutput& output);
        Frame next();

    private:
        ExtxyzReader reader_;
    };

    void write(std::string_view frame);
    int64_t frame_count() const { return frame_count_; }  // with those of earlier runs
    void commit();

private:
    std::string path_, target_, part_;
    int64_t kept_count_ = 0, frame_count_ = 0;
    std::unique_ptr<AppendFile> file_;
};

}  // namespace mlff::app
