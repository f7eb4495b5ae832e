// SPDX-License-Identifier: MIT
// Which device is current, and streams and events that are given back. For CUDA sources only.
#pragma once

#include <cuda_runtime.h>

#include <new>

#include "gpu/runtime/cuda_check.h"

namespace mlff::gpu {

// Makes a device current and the caller's again at the end.
class CurrentDevice {
public:
    explicit CurrentDevice(int device) {
        check(cudaGetDevice(&before_), "asking for the device");
        check(cudaSetDevice(device), "choosing the device");
    }
    CurrentDevice(int device, std::nothrow_t) {
        cudaGetDevice(&before_);
        cudaSetDevice(device);
    }
    CurrentDevice(const CurrentDevice&) = delete;
    CurrentDevice& operator=(const CurrentDevice&) = delete;
    ~CurrentDevice() { cudaSetDevice(before_); }

private:
    int before_ = 0;
};

// Does not wait for the default stream, nor the default stream for it.
class Stream {
public:
    Stream() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "making a stream"); }
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;
    ~Stream() { cudaStreamDestroy(stream_); }
    operator cudaStream_t() const { return stream_; }

private:
    cudaStream_t stream_ = nullptr;
};

// Makes `later` wait for what is in `earlier` now.
class StreamOrder {
public:
    StreamOrder() { check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "making an event"); }
    StreamOrder(const StreamOrder&) = delete;
    StreamOrder& operator=(const StreamOrder&) = delete;
    ~StreamOrder() { cudaEventDestroy(event_); }

    void follow(cudaStream_t earlier, cudaStream_t later) const {
        check(cudaEventRecord(event_, earlier), "waiting for the caller's stream");
        check(cudaStreamWaitEvent(later, event_, 0), "waiting for the caller's stream");
    }

private:
    cudaEvent_t event_ = nullptr;
};

// Throws Error{argument} that calls the pointer by name unless kernels of the device can use it as their own memory.
// nullptr is good.
inline void require_on_device(const void* pointer, int device, const char* name) {
    if (!pointer) return;
    cudaPointerAttributes attributes{};
    if (cudaPointerGetAttributes(&attributes, pointer) != cudaSuccess)
        cudaGetLastError();  // a pointer CUDA does not know
    const bool is_own = attributes.type == cudaMemoryTypeDevice && attributes.device == device;
    if (!is_own && attributes.type != cudaMemoryTypeManaged)
        fail(Status::argument, name, " is not memory of the session's GPU");
}

}  // namespace mlff::gpu
