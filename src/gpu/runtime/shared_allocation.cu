// SPDX-License-Identifier: MIT
#include "gpu/runtime/shared_allocation.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <utility>

#include "core/bytes_text.h"
#include "core/error.h"
#include "gpu/runtime/cuda_check.h"

namespace mlff::gpu {
namespace {

// Allocations are multiples of this size. They are aligned to it within the larger blocks that CUDA takes from the
// driver. CUDA's handles refer to those blocks.
constexpr int64_t kBlock = 2 << 20;

uint64_t random_number() {
    std::random_device random;
    return uint64_t{random()} << 32 | random();
}

// Another one after a fork().
uint64_t this_process() {
    static const uint64_t number = random_number();
    return number + static_cast<uint64_t>(getpid());
}

uint64_t this_machine() {
    static const uint64_t number = [] {
        std::string text;
        std::ifstream("/proc/sys/kernel/random/boot_id") >> text;
        char name[256] = {};
        gethostname(name, sizeof name - 1);
        return uint64_t{std::hash<std::string>()(text + name)};
    }();
    return number;
}

// The size in bytes of the block opened at `first`.
int64_t opened_size(const void* first) {
    using GetRange = int (*)(unsigned long long* base, size_t* size, unsigned long long pointer);
    void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (!driver) return 0;
    const auto get_range = reinterpret_cast<GetRange>(dlsym(driver, "cuMemGetAddressRange_v2"));
    unsigned long long base = 0;
    size_t size = 0;
    const bool is_known = get_range && get_range(&base, &size, reinterpret_cast<unsigned long long>(first)) == 0;
    dlclose(driver);
    return is_known ? static_cast<int64_t>(size) : 0;
}

const char* cannot_read(const GpuAddress& address) {
    return address.is_host ? "cannot read host memory of another process: "
                           : "cannot read the GPU memory of another process: ";
}

}  // namespace

SharedAllocation::SharedAllocation(SharedIn where, int64_t bytes, const char* purpose) : bytes_(bytes) {
    const int64_t whole = (kHead + bytes + kBlock - 1) / kBlock * kBlock;
    address_.machine = this_machine();
    address_.process = this_process();
    address_.token = random_number();
    if (where == SharedIn::host) {
        window_ = HostWindow(whole, purpose);
        first_ = window_.data();
        address_.is_host = 1;
        std::memcpy(address_.handle, &window_.place(), sizeof window_.place());
        address_.place = reinterpret_cast<uint64_t>(first_);
        std::memcpy(first_, &address_.token, sizeof address_.token);
        return;
    }
    if (cudaMalloc(&first_, static_cast<size_t>(whole)) != cudaSuccess) {
        cudaGetLastError();
        first_ = nullptr;
        fail(Status::memory, "the GPU cannot provide ", bytes_text(whole), " for ", purpose);
    }
    address_.place = reinterpret_cast<uint64_t>(first_);
    check(cudaMemcpy(first_, &address_.token, sizeof address_.token, cudaMemcpyHostToDevice), "writing a token");
    check(cudaStreamSynchronize(nullptr), "writing a token");  // a copy of a few bytes may return before it is complete
    cudaIpcMemHandle_t handle;
    static_assert(sizeof handle == sizeof address_.handle && sizeof(HostWindow::Place) <= sizeof address_.handle);
    if (cudaIpcGetMemHandle(&handle, first_) == cudaSuccess)
        std::memcpy(address_.handle, &handle, sizeof handle);
    else
        cudaGetLastError();  // other processes cannot open it, and report that
}

SharedAllocation::SharedAllocation(SharedAllocation&& other) noexcept { *this = std::move(other); }
SharedAllocation& SharedAllocation::operator=(SharedAllocation&& other) noexcept {
    std::swap(first_, other.first_);
    std::swap(window_, other.window_);
    std::swap(bytes_, other.bytes_);
    std::swap(address_, other.address_);
    return *this;
}
SharedAllocation::~SharedAllocation() {
    if (!window_.data()) cudaFree(first_);
}

OpenedAllocations::~OpenedAllocations() {
    for (const Opened& opened : opened_) close(opened);
}

OpenedAllocations::Opened OpenedAllocations::try_open(const GpuAddress& address) {
    if (address.machine != this_machine()) fail(Status::device, cannot_read(address), "it is on another machine");
    Opened opened;
    opened.address = address;
    if (address.is_host)
        open_on_host(opened);
    else
        open_on_gpu(opened);
    return opened;
}

void OpenedAllocations::open_on_host(Opened& opened) {
    const GpuAddress& address = opened.address;
    opened.first = reinterpret_cast<unsigned char*>(address.place);
    if (address.process != this_process()) {
        HostWindow::Place place;
        std::memcpy(&place, address.handle, sizeof place);
        opened.window = HostWindow(place);
        opened.first = opened.window.data();
    }
    uint64_t token = 0;
    std::memcpy(&token, opened.first, sizeof token);
    if (token != address.token) fail(Status::device, cannot_read(address), "the token was not found in it");
}

void OpenedAllocations::open_on_gpu(Opened& opened) {
    const GpuAddress& address = opened.address;
    void* first = reinterpret_cast<void*>(address.place);
    if (address.process != this_process()) {
        cudaIpcMemHandle_t handle;
        std::memcpy(&handle, address.handle, sizeof handle);
        const cudaError_t status = cudaIpcOpenMemHandle(&first, handle, cudaIpcMemLazyEnablePeerAccess);
        if (status != cudaSuccess) {
            cudaGetLastError();
            fail(Status::device, cannot_read(address), cudaGetErrorString(status));
        }
        opened.opened = first;
    }
    const int64_t size = opened.opened ? std::max(opened_size(first), kBlock) : kBlock;
    for (int64_t offset = 0; offset < size; offset += kBlock) {
        opened.first = static_cast<unsigned char*>(first) + offset;
        uint64_t token = 0;
        if (cudaMemcpy(&token, opened.first, sizeof token, cudaMemcpyDeviceToHost) != cudaSuccess) break;
        if (token == address.token) return;
    }
    cudaGetLastError();
    close(opened);
    fail(Status::device, cannot_read(address), "the token was not found in the ", bytes_text(size),
         " that were opened");
}

void OpenedAllocations::close(const Opened& opened) {
    if (opened.opened) cudaIpcCloseMemHandle(opened.opened);
}

const unsigned char* OpenedAllocations::open(const GpuAddress& address) {
    auto found =
        std::find_if(opened_.begin(), opened_.end(), [&](const Opened& opened) { return opened.address == address; });
    if (found == opened_.end()) found = opened_.insert(opened_.end(), try_open(address));
    found->is_used = true;
    return found->first + SharedAllocation::kHead;
}

void OpenedAllocations::begin_round() {
    for (Opened& opened : opened_) opened.is_used = false;
}

void OpenedAllocations::close_rest() {
    for (const Opened& opened : opened_)
        if (!opened.is_used) close(opened);
    std::erase_if(opened_, [](const Opened& opened) { return !opened.is_used; });
}

}  // namespace mlff::gpu
