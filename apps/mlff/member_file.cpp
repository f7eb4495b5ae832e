// SPDX-License-Identifier: MIT
#include "member_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "append_file.h"
#include "core/error.h"

namespace mlff::app {

MemberFile::MemberFile(std::string path, std::optional<uint64_t> go_on_at) : path_(std::move(path)), size_(go_on_at) {
    append("");
}

void MemberFile::add(std::string_view text) {
    constexpr size_t kMostInMemory = 1 << 15;
    waiting_ += text;
    if (waiting_.size() > kMostInMemory) flush();
}

uint64_t MemberFile::flush() {
    if (!waiting_.empty()) append(waiting_);
    waiting_.clear();
    return *size_;
}

void MemberFile::append(std::string_view text) {
    AppendFile file(path_, size_);
    file.write(text);
    size_ = file.size();
}

SyncedFolder::SyncedFolder(std::string path)
    : path_(std::move(path)), descriptor_(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    if (descriptor_ < 0) fail(Status::file, path_, ": cannot open the folder (", std::strerror(errno), ")");
}

SyncedFolder::~SyncedFolder() { ::close(descriptor_); }

void SyncedFolder::sync() const {
    if (::syncfs(descriptor_) != 0 && errno != EINVAL && errno != EROFS)
        fail(Status::file, path_, ": cannot write the files of the folder (", std::strerror(errno), ")");
}

void check_size(const std::string& path, uint64_t place) {
    std::error_code error;
    const uint64_t size = std::filesystem::file_size(path, error);
    if (error) fail(Status::file, path, ": cannot go on with the file (", error.message(), ")");
    if (size < place)
        fail(Status::file, path, ": the file is shorter than the ", place,
             " bytes it had when the restart file was written");
}

void remove_old_restart(const std::string& path) {
    std::error_code error;
    std::filesystem::remove(path, error);
    if (error) fail(Status::file, path, ": cannot remove the file (", error.message(), ")");
}

}  // namespace mlff::app
