// SPDX-License-Identifier: MIT
#include "append_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/error.h"

namespace mlff::app {

AppendFile::AppendFile(const std::string& path, std::optional<uint64_t> go_on_at) : path_(path) {
    descriptor_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_APPEND | (go_on_at ? 0 : O_CREAT | O_TRUNC), 0666);
    if (descriptor_ < 0) fail(Status::file, path, ": cannot write the file (", std::strerror(errno), ")");
    if (!go_on_at) return;
    struct stat status {};
    const bool has_size = ::fstat(descriptor_, &status) == 0 && S_ISREG(status.st_mode);
    const bool is_long_enough = has_size && static_cast<uint64_t>(status.st_size) >= *go_on_at;
    if (is_long_enough && ::ftruncate(descriptor_, static_cast<off_t>(*go_on_at)) == 0) {
        size_ = *go_on_at;
        return;
    }
    ::close(descriptor_);
    descriptor_ = -1;
    fail(Status::file, path, ": the file is shorter than the ", *go_on_at,
         " bytes it had when the restart file was written");
}

AppendFile::~AppendFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
}

void AppendFile::write(std::string_view text) {
    while (!text.empty()) {
        const ssize_t written = ::write(descriptor_, text.data(), text.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) fail(Status::file, path_, ": cannot write the file (", std::strerror(errno), ")");
        text.remove_prefix(static_cast<size_t>(written));
        size_ += static_cast<uint64_t>(written);
    }
}

uint64_t AppendFile::sync() {
    if (::fdatasync(descriptor_) != 0 && errno != EINVAL && errno != EROFS)  // a pipe or a device has no disk
        fail(Status::file, path_, ": cannot write the file (", std::strerror(errno), ")");
    return size_;
}

}  // namespace mlff::app
