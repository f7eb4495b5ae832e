// SPDX-License-Identifier: MIT
// Growing GPU memory, kept from step to step, and pinned host memory for results. For CUDA sources only.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include "core/bytes_text.h"
#include "core/error.h"
#include "gpu/runtime/cuda_check.h"

namespace mlff::gpu {

template <class T>
class DeviceBuffer {
    static_assert(std::is_trivially_copyable_v<T>);

public:
    DeviceBuffer() = default;
    DeviceBuffer(DeviceBuffer&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)),
          size_(std::exchange(other.size_, 0)),
          capacity_(std::exchange(other.capacity_, 0)) {}
    DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        std::swap(capacity_, other.capacity_);
        return *this;
    }
    ~DeviceBuffer() { cudaFree(data_); }

    // Sets the size and discards the contents. The memory never shrinks; growing waits for the device. If there is not
    // enough memory, the buffer is left empty, and the error says how much `purpose` needed.
    void resize_discard(int64_t count, const char* purpose) {
        if (count > capacity_) {
            release();
            if (!try_allocate(count + count / 8) && !try_allocate(count)) refuse(count, purpose);
        }
        size_ = count;
    }

    // Allocates room for exactly this many elements; discards the contents if that needs new memory. Errors as above.
    void reserve_discard(int64_t count, const char* purpose) {
        if (count <= capacity_) return;
        release();
        if (!try_allocate(count)) refuse(count, purpose);
    }
    void release() {
        cudaFree(std::exchange(data_, nullptr));
        size_ = capacity_ = 0;
    }

    // Copies from host memory, which may be pageable. Waits for the stream.
    void upload(const T* from, int64_t count, const char* purpose, cudaStream_t stream) {
        resize_discard(count, purpose);
        if (count == 0) return;
        check(cudaMemcpyAsync(data_, from, static_cast<size_t>(count) * sizeof(T), cudaMemcpyHostToDevice, stream),
              "copying to the GPU");
        check(cudaStreamSynchronize(stream), "copying to the GPU");
    }
    void download(T* to, int64_t count, cudaStream_t stream) const {
        if (count > 0)
            check(cudaMemcpyAsync(to, data_, static_cast<size_t>(count) * sizeof(T), cudaMemcpyDeviceToHost, stream),
                  "copying a result");
    }
    void clear(cudaStream_t stream) {
        if (size_ > 0)
            check(cudaMemsetAsync(data_, 0, static_cast<size_t>(size_) * sizeof(T), stream), "clearing memory");
    }

    T* data() const { return data_; }
    int64_t size() const { return size_; }
    int64_t capacity() const { return capacity_; }
    static constexpr int64_t kItemBytes = sizeof(T);

private:
    static constexpr int64_t kMost = std::numeric_limits<int64_t>::max() / 2 / static_cast<int64_t>(sizeof(T));

    bool try_allocate(int64_t count) {
        if (count > kMost) return false;
        const cudaError_t status = cudaMalloc(&data_, static_cast<size_t>(count) * sizeof(T));
        if (status == cudaErrorMemoryAllocation) {
            cudaGetLastError();
            return false;
        }
        check(status, "allocating GPU memory");
        capacity_ = count;
        return true;
    }

    [[noreturn]] static void refuse(int64_t count, const char* purpose) {
        size_t free_bytes = 0;
        size_t total_bytes = 0;
        cudaMemGetInfo(&free_bytes, &total_bytes);
        fail(Status::memory, "the GPU has ", bytes_text(free_bytes), " of ", bytes_text(total_bytes), " free, but ",
             purpose, " need ", bytes_text(static_cast<double>(count) * sizeof(T)));
    }

    T* data_ = nullptr;
    int64_t size_ = 0;
    int64_t capacity_ = 0;
};

// Pinned host memory: the GPU copies to and from it asynchronously.
template <class T>
class PinnedBuffer {
    static_assert(std::is_trivially_copyable_v<T>);

public:
    PinnedBuffer() = default;
    PinnedBuffer(const PinnedBuffer&) = delete;
    PinnedBuffer& operator=(const PinnedBuffer&) = delete;
    ~PinnedBuffer() { cudaFreeHost(data_); }

    // Sets the size and discards the contents. The memory never shrinks.
    void resize_discard(int64_t count) {
        if (count > capacity_) {
            cudaFreeHost(std::exchange(data_, nullptr));
            capacity_ = 0;
            if (cudaMallocHost(&data_, static_cast<size_t>(count) * sizeof(T)) != cudaSuccess) {
                cudaGetLastError();
                fail(Status::memory, "cannot allocate ", bytes_text(static_cast<double>(count) * sizeof(T)),
                     " of pinned host memory");
            }
            capacity_ = count;
        }
    }
    T* data() const { return data_; }
    int64_t capacity() const { return capacity_; }

private:
    T* data_ = nullptr;
    int64_t capacity_ = 0;
};

template <class T>
class PinnedValue {
    static_assert(std::is_trivially_copyable_v<T>);

public:
    PinnedValue() { check(cudaMallocHost(&value_, sizeof(T)), "allocating pinned memory"); }
    PinnedValue(const PinnedValue&) = delete;
    PinnedValue& operator=(const PinnedValue&) = delete;
    ~PinnedValue() { cudaFreeHost(value_); }

    // Copies the value to the host. Waits for all earlier work in the stream.
    const T& read(const T* on_device, cudaStream_t stream) {
        check(cudaMemcpyAsync(value_, on_device, sizeof(T), cudaMemcpyDeviceToHost, stream), "copying a result");
        check(cudaStreamSynchronize(stream), "waiting for a result");
        return *value_;
    }

private:
    T* value_ = nullptr;
};

}  // namespace mlff::gpu
