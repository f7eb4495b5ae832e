// SPDX-License-Identifier: MIT
#include "harvest_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/error.h"

namespace mlff::app {
namespace {

// The bytes of the whole frames that a text begins with: lines with the number of atoms, a comment, and the atoms.
size_t whole_frames_size(std::string_view text) {
    size_t whole = 0;
    for (;;) {
        int64_t atoms = -1;
        size_t place = whole;
        for (int64_t line = 0; line < atoms + 2 || atoms < 0; ++line) {
            const size_t end = text.find('\n', place);
            if (end == std::string_view::npos) return whole;
            if (line == 0) {
                const auto parsed = std::from_chars(text.data() + place, text.data() + end, atoms);
                if (parsed.ec != std::errc() || atoms < 0 || atoms > static_cast<int64_t>(text.size()))
                    return text.size();  // the reader says what is wrong
            }
            place = end + 1;
        }
        whole = place;
    }
}

Surroundings worst_surroundings(const Frame& frame) {
    const AtomColumn* column = frame.find_column("sigma_forces");
    const auto* sigmas = column && column->width == 1 ? std::get_if<std::vector<double>>(&column->values) : nullptr;
    if (!sigmas || sigmas->empty()) fail(Status::format, "no column sigma_forces, which 'mlff md --harvest' writes");
    const auto worst = std::max_element(sigmas->begin(), sigmas->end());
    return Surroundings(frame.view(), worst - sigmas->begin());
}

}  // namespace

HarvestFolder::HarvestFolder(const std::string& folder) {
    const std::string path = frames_path(folder), lock_path = folder + "/lock";
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    lock_ = ::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (lock_ < 0)
        fail(Status::file, "--harvest ", folder, ": cannot write into the folder (", std::strerror(errno), ")");
    try {
        if (::flock(lock_, LOCK_EX | LOCK_NB) != 0)
            fail(Status::file, "--harvest ", folder, ": another run writes into this folder; give each its own");
        const std::string text = std::filesystem::exists(path) ? whole_frames(folder) : "";
        std::istringstream whole(text);
        ExtxyzReader reader(whole, path);
        for (Frame frame; reader.next(frame);) {
            try {
                known_.push_back(worst_surroundings(frame));
            } catch (const Error& fault) {
                fail(fault.status(), path, ": frame ", reader.frames_read() - 1, ": ", fault.what());
            }
        }
        if (text.empty())
            file_.emplace(path, std::nullopt);
        else
            file_.emplace(path, text.size());
    } catch (...) {
        ::close(lock_);
        throw;
    }
}

HarvestFolder::~HarvestFolder() { ::close(lock_); }

std::string HarvestFolder::whole_frames(const std::string& folder) {
    std::ifstream file(frames_path(folder), std::ios::binary);
    std::ostringstream content;
    if (file && file.peek() != std::ifstream::traits_type::eof()) content << file.rdbuf();
    if (!file.is_open() || !content) fail(Status::file, frames_path(folder), ": cannot read the file");
    std::string text = content.str();
    text.resize(whole_frames_size(text));
    return text;
}

bool HarvestFolder::add(const Frame& frame) {
    Surroundings surroundings = worst_surroundings(frame);
    if (std::any_of(known_.begin(), known_.end(), [&](const Surroundings& one) { return one.are_like(surroundings); }))
        return false;
    std::ostringstream text;
    write_extxyz(text, frame);
    file_->write(text.view());
    known_.push_back(std::move(surroundings));
    return true;
}

}  // namespace mlff::app
