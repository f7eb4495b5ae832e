// SPDX-License-Identifier: MIT
// Owners of the current device, of streams and of events. For CUDA sources only.
#pragma once

#include <cuda_runtime.h>

#include <new>

#include "gpu/runtime/cuda_check.h"

namespace mlff::gpu {

// Makes a device current, and restores the previous one at the end.
class CurrentDevice {
public:
    explicit CurrentDevice(int device) {
        check(cudaGetDevice(&before_), "querying the current device");
        check(cudaSetDevice(device), "setting the current device");
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

// A stream that does not synchronise with the default stream.
class Stream {
public:
    Stream() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "creating a stream"); }
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;
    ~Stream() { cudaStreamDestroy(stream_); }
    operator cudaStream_t() const { return stream_; }

private:
    cudaStream_t stream_ = nullptr;
};

// Makes `later` wait for the work now in `earlier`.
class StreamOrder {
public:
    StreamOrder() { check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "creating an event"); }
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

// Throws Error{argument} that names the pointer, unless kernels can use it as memory of this device. nullptr is
// accepted.
inline void require_on_device(const void* pointer, int device, const char* name) {
    if (!pointer) return;
    cudaPointerAttributes attributes{};
    if (cudaPointerGetAttributes(&attributes, pointer) != cudaSuccess)
        cudaGetLastError();  // CUDA does not know the pointer
    const bool is_own = attributes.type == cudaMemoryTypeDevice && attributes.device == device;
    if (!is_own && attributes.type != cudaMemoryTypeManaged)
        fail(Status::argument, name, " does not point to memory of the session's GPU");
}

}  // namespace mlff::gpu
