// SPDX-License-Identifier: MIT
#include "gpu/runtime/host_window.h"

#include <cuda_runtime.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "core/bytes_text.h"
#include "core/error.h"

namespace mlff::gpu {
namespace {

constexpr const char* kName = "mlff-rows";
constexpr const char* kCannot = "cannot map host memory of another process: ";

// Where a process shows the memory behind one of its files.
std::string path_of(const HostWindow::Place& place) {
    return "/proc/" + std::to_string(place.process) + "/fd/" + std::to_string(place.file);
}

// Opening some other file could have effects, or wait.
bool is_window(const std::string& path) {
    char target[64] = {};
    return readlink(path.c_str(), target, sizeof target - 1) > 0 && std::strstr(target, kName) != nullptr;
}

}  // namespace

HostWindow::HostWindow(int64_t bytes, const char* purpose) : place_{getpid(), -1, bytes} {
    // Taking more than there is would not fail: the system would end processes until there is room.
    if (bytes / sysconf(_SC_PAGESIZE) >= sysconf(_SC_PHYS_PAGES))
        fail(Status::memory, "the machine has less than the ", bytes_text(bytes), " of shared memory for ", purpose);
    file_ = memfd_create(kName, MFD_CLOEXEC);
    place_.file = file_;
    // Takes the memory now: a write to a file that cannot grow would end the process.
    const int failure = file_ < 0 ? errno : posix_fallocate(file_, 0, bytes);
    try {
        if (failure != 0)
            fail(Status::memory, "the machine cannot provide ", bytes_text(bytes), " of shared memory for ", purpose,
                 ": ", std::strerror(failure));
        map(file_);
    } catch (...) {
        if (file_ >= 0) close(file_);
        throw;
    }
}

HostWindow::HostWindow(const Place& place) : place_(place) {
    const std::string path = path_of(place);
    if (!is_window(path)) fail(Status::device, kCannot, "this process does not see it");
    const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (file < 0) fail(Status::device, kCannot, std::strerror(errno));
    try {
        struct stat found = {};
        if (fstat(file, &found) != 0 || found.st_size != place.bytes)
            fail(Status::device, kCannot, "it has another size");
        map(file);
    } catch (...) {
        close(file);
        throw;
    }
    close(file);  // the mapping stays
}

void HostWindow::map(int file) {
    const auto size = static_cast<size_t>(place_.bytes);
    void* const first = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (first == MAP_FAILED) fail(Status::device, kCannot, std::strerror(errno));
    const cudaError_t status = cudaHostRegister(first, size, cudaHostRegisterPortable);
    if (status != cudaSuccess) {
        cudaGetLastError();
        munmap(first, size);
        fail(Status::device, "cannot pin memory that processes share: ", cudaGetErrorString(status));
    }
    first_ = static_cast<unsigned char*>(first);
}

HostWindow::HostWindow(HostWindow&& other) noexcept { *this = std::move(other); }
HostWindow& HostWindow::operator=(HostWindow&& other) noexcept {
    std::swap(first_, other.first_);
    std::swap(file_, other.file_);
    std::swap(place_, other.place_);
    return *this;
}
HostWindow::~HostWindow() {
    if (first_) {
        cudaHostUnregister(first_);  // waits for copies that are under way
        munmap(first_, static_cast<size_t>(place_.bytes));
    }
    if (file_ >= 0) close(file_);
}

}  // namespace mlff::gpu
