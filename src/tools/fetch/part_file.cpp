// SPDX-License-Identifier: MIT
#include "tools/fetch/part_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "core/error.h"

namespace mlff::fetch {

std::optional<PartFile> PartFile::open(const std::string& path, const std::function<bool()>& wait) {
    for (;;) {
        const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (descriptor < 0) fail(Status::file, path, ": cannot be opened for a download (", std::strerror(errno), ")");
        while (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
            const int reason = errno;
            const bool is_taken = reason == EWOULDBLOCK || reason == EINTR;
            if (is_taken && wait()) {
                ::usleep(100'000);
                continue;
            }
            ::close(descriptor);
            if (!is_taken) fail(Status::file, path, ": cannot be locked (", std::strerror(reason), ")");
            return std::nullopt;
        }
        // Whoever had it may have renamed or removed it: then this is another file by now.
        struct stat opened {
        }, named{};
        if (::fstat(descriptor, &opened) == 0 && S_ISREG(opened.st_mode) && ::stat(path.c_str(), &named) == 0 &&
            opened.st_ino == named.st_ino && opened.st_dev == named.st_dev)
            return PartFile(path, descriptor, opened.st_size);
        ::close(descriptor);
        if (!S_ISREG(opened.st_mode)) fail(Status::file, path, ": is no plain file");
    }
}

PartFile::PartFile(PartFile&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)), size_(other.size_) {}

PartFile::~PartFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
}

void PartFile::write(const void* data, size_t size) {
    const char* from = static_cast<const char*>(data);
    while (size > 0) {
        const ssize_t written = ::pwrite(descriptor_, from, size, size_);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) fail(Status::file, path_, ": cannot write (", std::strerror(errno), ")");
        from += written;
        size -= static_cast<size_t>(written);
        size_ += written;
    }
}

void PartFile::clear() {
    if (::ftruncate(descriptor_, 0) != 0) fail(Status::file, path_, ": cannot be emptied (", std::strerror(errno), ")");
    size_ = 0;
}

void PartFile::sync() {
    if (::fsync(descriptor_) != 0) fail(Status::file, path_, ": cannot write (", std::strerror(errno), ")");
}

void PartFile::remove() { ::unlink(path_.c_str()); }

}  // namespace mlff::fetch
