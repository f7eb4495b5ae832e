// SPDX-License-Identifier: MIT
#include "core/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/error.h"

namespace mlff {
namespace {

struct Descriptor {
    int value;
    ~Descriptor() { ::close(value); }
};

[[noreturn]] void fail_with_errno(const std::string& path, const char* what) {
    fail(Status::file, path, ": cannot ", what, " (", std::strerror(errno), ")");
}

}  // namespace

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path) {
    // Without O_NONBLOCK, opening a pipe would wait for a writer.
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) fail_with_errno(path, "open the file");
    const Descriptor guard{descriptor};

    struct stat status {};
    if (fstat(descriptor, &status) != 0) fail_with_errno(path, "read the file");
    if (S_ISDIR(status.st_mode)) fail(Status::file, path, ": is a directory, expected a file");
    if (!S_ISREG(status.st_mode)) fail(Status::file, path, ": is not a regular file");

    std::shared_ptr<MappedFile> file(new MappedFile);
    const auto size = static_cast<size_t>(status.st_size);
    if (size == 0) return file;

    void* mapping = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (mapping != MAP_FAILED) {
        file->mapping_ = mapping;
        file->bytes_ = {static_cast<const std::byte*>(mapping), size};
        return file;
    }
    file->copy_ = std::make_unique<std::byte[]>(size);  // some network and overlay file systems cannot map
    size_t done = 0;
    while (done < size) {
        const ssize_t got = ::read(descriptor, file->copy_.get() + done, size - done);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) fail_with_errno(path, "read the file");
        if (got == 0) fail(Status::file, path, ": the file became shorter while it was being read");
        done += static_cast<size_t>(got);
    }
    file->bytes_ = {file->copy_.get(), size};
    return file;
}

void MappedFile::drop_pages() const {
    if (mapping_) madvise(mapping_, bytes_.size(), MADV_DONTNEED);  // a hint only
}

MappedFile::~MappedFile() {
    if (mapping_) munmap(mapping_, bytes_.size());
}

}  // namespace mlff
