// SPDX-License-Identifier: MIT
#include "core/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "core/error.h"

namespace mlff {
namespace {

// Follows symbolic links to the file itself, which need not exist yet. That file is replaced; the link stays.
std::string behind_links(const std::string& path) {
    std::error_code not_there, unreadable;
    std::filesystem::path at = path;
    for (int links = 0; links < 40 && std::filesystem::is_symlink(at, not_there); ++links) {
        at = at.parent_path() / std::filesystem::read_symlink(at, unreadable);
        if (unreadable) return path;
    }
    return at.string();
}

}  // namespace

OutputFile::OutputFile(const std::string& path) : path_(path), target_(behind_links(path)) {
    std::error_code ignored;
    if (std::filesystem::exists(path, ignored) && !std::filesystem::is_regular_file(path, ignored)) {
        descriptor_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);  // a device or a pipe is written in place
    } else {
        static std::atomic<unsigned> counter{0};
        temporary_ = concat(target_, ".", ::getpid(), "-", counter++, ".part");
        descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    }
    if (descriptor_ < 0) fail(Status::file, path, ": cannot write the file (", std::strerror(errno), ")");
}

OutputFile::~OutputFile() {
    if (descriptor_ < 0) return;
    ::close(descriptor_);
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void OutputFile::write(const void* data, size_t size) {
    const char* at = static_cast<const char*>(data);
    while (size > 0) {
        const ssize_t written = ::write(descriptor_, at, size);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) fail(Status::file, path_, ": cannot write the file (", std::strerror(errno), ")");
        at += written;
        size -= static_cast<size_t>(written);
    }
}

void OutputFile::commit() {
    const bool is_on_disk = ::fdatasync(descriptor_) == 0 || errno == EINVAL ||
                            errno == EROFS;  // pipes and devices cannot be synchronised to disk
    const int sync_error = errno;
    const bool is_closed = ::close(std::exchange(descriptor_, -1)) == 0;
    if (!is_on_disk) errno = sync_error;
    const bool renamed =
        is_on_disk && is_closed && (temporary_.empty() || ::rename(temporary_.c_str(), target_.c_str()) == 0);
    if (renamed) return;
    const int reason = errno;
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
    fail(Status::file, path_, ": cannot write the file (", std::strerror(reason), ")");
}

}  // namespace mlff
