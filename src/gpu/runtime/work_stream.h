// SPDX-License-Identifier: MIT
// A stream for a caller's work on a device. Everything on the CPU is done when a call returns, so its stream is empty.
#pragma once

#include <memory>

#include "core/device.h"

namespace mlff {

class WorkStream {
public:
    virtual ~WorkStream() = default;
    virtual void* handle() const { return nullptr; }  // a cudaStream_t on a GPU
    virtual void synchronize() {}  // waits until all work in it has finished; throws Error{device} if it failed
};

// Throws Error{device} if there is no such GPU.
std::unique_ptr<WorkStream> make_work_stream(const Device& device);

// Defined once in work_stream.cu and once in gpu_none.cpp.
std::unique_ptr<WorkStream> make_gpu_stream(int ordinal);

}  // namespace mlff
