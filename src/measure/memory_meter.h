// SPDX-License-Identifier: MIT
// Memory in use: of this process, or on a GPU. An interface, so that tests can replace it.
#pragma once

#include <cstdint>
#include <memory>

#include "core/device.h"

namespace mlff::bench {

class MemoryMeter {
public:
    virtual ~MemoryMeter() = default;
    virtual int64_t used_bytes() = 0;
    virtual void begin_peak() {}  // returns freed memory to the system; peak_bytes() counts from here
    virtual int64_t peak_bytes() { return used_bytes(); }  // the maximum since begin_peak()
};

// Resident memory from /proc, of this process and its child processes (which run Python models).
class ProcessMemory : public MemoryMeter {
public:
    int64_t used_bytes() override;
    void begin_peak() override;
    int64_t peak_bytes() override;

private:
    bool has_peak_ = false;
};

// Memory on a GPU, of all processes: CUDA does not say whose it is. Its peak is what is in use when it is asked for.
class GpuMemory : public MemoryMeter {
public:
    explicit GpuMemory(int ordinal) : ordinal_(ordinal) {}
    int64_t used_bytes() override;

private:
    int ordinal_;
};

// Throws Error{device} if there is no such GPU.
std::unique_ptr<MemoryMeter> make_memory_meter(const Device& device);

}  // namespace mlff::bench
