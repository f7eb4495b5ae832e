// SPDX-License-Identifier: MIT
// A growing array that does not initialise new elements. Used for scratch memory that is kept from call to call.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

namespace mlff {

template <class T>
class Buffer {
    static_assert(std::is_trivially_copyable_v<T>);

public:
    Buffer() = default;
    Buffer(Buffer&& other) noexcept { swap(other); }
    Buffer& operator=(Buffer&& other) noexcept {
        swap(other);
        return *this;
    }
    ~Buffer() { std::free(data_); }

    // Sets the size and discards the contents. The allocated memory never shrinks.
    void resize_discard(size_t count) {
        if (count > capacity_) {
            std::free(std::exchange(data_, nullptr));
            size_ = capacity_ = 0;
            allocate(std::max(count, count + count / 8));
        }
        size_ = count;
    }

    T* data() { return data_; }
    const T* data() const { return data_; }
    size_t size() const { return size_; }
    bool empty() const { return size_ == 0; }
    T& operator[](size_t i) { return data_[i]; }
    const T& operator[](size_t i) const { return data_[i]; }
    T* begin() { return data_; }
    T* end() { return data_ + size_; }
    const T* begin() const { return data_; }
    const T* end() const { return data_ + size_; }
    operator std::span<const T>() const { return {data_, size_}; }

private:
    void swap(Buffer& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        std::swap(capacity_, other.capacity_);
    }

    void allocate(size_t count) {
        constexpr size_t kHugePage = size_t{2} << 20;
        if (count > (~size_t{0} >> 1) / sizeof(T)) throw std::bad_alloc();
        const size_t bytes = count * sizeof(T);
        const bool large = bytes >= 4 * kHugePage;
        const size_t alignment = large ? kHugePage : 64;
        data_ = static_cast<T*>(std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment));
        if (!data_) throw std::bad_alloc();
        if (large) madvise(data_, bytes, MADV_HUGEPAGE);  // fewer page faults and TLB misses; a hint only
        capacity_ = count;
    }

    T* data_ = nullptr;
    size_t size_ = 0;
    size_t capacity_ = 0;
};

}  // namespace mlff
