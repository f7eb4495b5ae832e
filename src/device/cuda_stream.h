// SPDX-License-Identifier: MIT
// Which device is current, and streams and events that are given back. For CUDA sources only.
#pragma once

#include <cuda_runtime.h>

#include <new>

#include "device/cuda_check.h"

namespace mlff::cuda {

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

}  // namespace mlff::cuda
