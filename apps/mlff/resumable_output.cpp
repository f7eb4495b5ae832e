// SPDX-License-Identifier: MIT
#include "resumable_output.h"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>

#include "core/error.h"

namespace mlff::app {
namespace {

namespace fs = std::filesystem;

struct WholeFrames {
    int64_t count = 0;
    uint64_t size = 0;  // bytes
};

// Of a file that this program wrote, up to where it was cut off.
WholeFrames whole_frames(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) fail(Status::file, path, ": cannot read the file (", std::strerror(errno), ")");
    WholeFrames found;
    uint64_t size = 0;
    std::string line;
    const auto next_line = [&] {
        if (!std::getline(file, line) || file.eof()) return false;  // the last one has an end too
        size += line.size() + 1;
        return true;
    };
    while (next_line()) {
        int64_t atoms = -1;
        const auto parsed = std::from_chars(line.data(), line.data() + line.size(), atoms);
        if (parsed.ec != std::errc() || parsed.ptr != line.data() + line.size() || atoms < 0)
            fail(Status::format, path, ": '", line,
                 "' is not a number of atoms: not a file that --resume goes on with");
        int64_t lines = 0;
        while (lines < atoms + 1 && next_line()) ++lines;
        if (lines < atoms + 1) break;
        found = {found.count + 1, size};
    }
    return found;
}

std::string behind_links(const std::string& path) {
    std::error_code ignored;
    const fs::path target = fs::weakly_canonical(path, ignored);
    return ignored ? path : target.string();
}

}  // namespace

ResumableOutput::ResumableOutput(const std::string& path, bool goes_on) : path_(path) {
    std::error_code ignored;
    if (fs::exists(path, ignored) && !fs::is_regular_file(path, ignored)) {
        file_ = std::make_unique<AppendFile>(path, std::nullopt);
        return;
    }
    target_ = behind_links(path);
    part_ = target_ + ".part";
    std::optional<uint64_t> place;
    if (fs::exists(part_, ignored)) {
        if (!goes_on)
            fail(Status::argument, part_,
                 " is of a run that was stopped: go on with it with --resume, or delete it to begin anew");
        const WholeFrames found = whole_frames(part_);
        kept_count_ = frame_count_ = found.count;
        place = found.size;
    }
    try {
        file_ = std::make_unique<AppendFile>(part_, place);
    } catch (const Error& error) {  // names the file that was asked for
        throw Error(error.status(), concat(path_, ": cannot write the file (", error.what(), ")"));
    }
}

ResumableOutput::~ResumableOutput() {
    std::error_code ignored;
    if (file_ && !part_.empty() && frame_count_ == 0) fs::remove(part_, ignored);
}

ResumableOutput::Kept::Kept(const ResumableOutput& output) : reader_(output.part_) {}

Frame ResumableOutput::Kept::next() {
    Frame frame;
    if (!reader_.next(frame)) fail(Status::internal, "a frame of an earlier run is missing");
    return frame;
}

void ResumableOutput::write(std::string_view frame) {
    file_->write(frame);
    ++frame_count_;
}

void ResumableOutput::commit() {
    file_->sync();
    file_.reset();
    if (part_.empty()) return;
    std::error_code error;
    fs::rename(part_, target_, error);
    if (error) fail(Status::file, path_, ": cannot write the file (", error.message(), ")");
}

}  // namespace mlff::app
