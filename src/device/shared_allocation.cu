// SPDX-License-Identifier: MIT
#include "device/shared_allocation.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <utility>

#include "core/error.h"
#include "device/cuda_check.h"

namespace mlff::cuda {
namespace {

// CUDA hands out parts of blocks of this size, and shares whole blocks.
constexpr int64_t kBlock = 2 << 20;

uint64_t random_number() {
    std::random_device random;
    return uint64_t{random()} << 32 | random();
}

uint64_t this_process() {
    static const uint64_t number = random_number();
    return number;
}

uint64_t this_machine() {
    static const uint64_t number = [] {
        std::string text;
        std::ifstream("/proc/sys/kernel/random/boot_id") >> text;
        return text.empty() ? this_process() : uint64_t{std::hash<std::string>()(text)};
    }();
    return number;
}

}  // namespace

SharedAllocation::SharedAllocation(int64_t bytes, const char* purpose) : bytes_(bytes) {
    const int64_t whole = (kHead + bytes + kBlock - 1) / kBlock * kBlock;
    if (cudaMalloc(&first_, static_cast<size_t>(whole)) != cudaSuccess) {
        cudaGetLastError();
        first_ = nullptr;
        fail(Status::memory, "the GPU has no ", whole >> 20, " MiB for ", purpose);
    }
    address_.machine = this_machine();
    address_.process = this_process();
    address_.place = reinterpret_cast<uint64_t>(first_);
    address_.token = random_number();
    check(cudaMemcpy(first_, &address_.token, sizeof address_.token, cudaMemcpyHostToDevice), "writing a token");
    cudaIpcMemHandle_t handle;
    static_assert(sizeof handle == sizeof address_.handle);
    if (cudaIpcGetMemHandle(&handle, first_) == cudaSuccess)
        std::memcpy(address_.handle, &handle, sizeof handle);
    else
        cudaGetLastError();  // other processes will not reach it, and say so
}

SharedAllocation::SharedAllocation(SharedAllocation&& other) noexcept { *this = std::move(other); }
SharedAllocation& SharedAllocation::operator=(SharedAllocation&& other) noexcept {
    std::swap(first_, other.first_);
    std::swap(bytes_, other.bytes_);
    std::swap(address_, other.address_);
    return *this;
}
SharedAllocation::~SharedAllocation() { cudaFree(first_); }

OpenedAllocations::~OpenedAllocations() {
    for (const Opened& opened : opened_) close(opened);
}

OpenedAllocations::Opened OpenedAllocations::try_open(const GpuAddress& address) {
    Opened opened;
    opened.address = address;
    if (address.machine != this_machine()) return opened;
    opened.is_foreign = address.process != this_process();
    void* first = reinterpret_cast<void*>(address.place);
    if (opened.is_foreign) {
        cudaIpcMemHandle_t handle;
        std::memcpy(&handle, address.handle, sizeof handle);
        if (cudaIpcOpenMemHandle(&first, handle, cudaIpcMemLazyEnablePeerAccess) != cudaSuccess) {
            cudaGetLastError();
            return opened;
        }
    }
    opened.first = static_cast<unsigned char*>(first);
    uint64_t token = 0;
    if (cudaMemcpy(&token, first, sizeof token, cudaMemcpyDeviceToHost) == cudaSuccess && token == address.token) return opened;
    cudaGetLastError();
    close(opened);
    opened.first = nullptr;
    return opened;
}

void OpenedAllocations::close(const Opened& opened) {
    if (opened.first && opened.is_foreign) cudaIpcCloseMemHandle(opened.first);
}

const unsigned char* OpenedAllocations::open(const GpuAddress& address) {
    auto found = std::find_if(opened_.begin(), opened_.end(), [&](const Opened& opened) { return opened.address == address; });
    if (found == opened_.end()) found = opened_.insert(opened_.end(), try_open(address));
    found->is_used = true;
    return found->first ? found->first + SharedAllocation::kHead : nullptr;
}

void OpenedAllocations::begin_round() {
    for (Opened& opened : opened_) opened.is_used = false;
}

void OpenedAllocations::close_rest() {
    for (const Opened& opened : opened_)
        if (!opened.is_used) close(opened);
    std::erase_if(opened_, [](const Opened& opened) { return !opened.is_used; });
}

}  // namespace mlff::cuda
