// SPDX-License-Identifier: MIT
// The buffers of an evaluation and the number of items that each must hold. The same list adds up the memory needed and
// allocates it, so the two cannot disagree. It does not depend on CUDA: a buffer is any type with capacity(),
// kItemBytes, reserve_discard() and release().
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace mlff::gpu {

class BufferList {
public:
    // A buffer may be added several times: the largest count is used.
    template <class Buffer>
    void add(Buffer& buffer, int64_t count, const char* purpose) {
        const auto found =
            std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.buffer == &buffer; });
        if (found != entries_.end()) {
            found->count = std::max(found->count, count);
            return;
        }
        entries_.push_back(
            {&buffer, count, buffer.capacity(), Buffer::kItemBytes, purpose,
             [](void* at, int64_t wanted, const char* why) { static_cast<Buffer*>(at)->reserve_discard(wanted, why); },
             [](void* at) { static_cast<Buffer*>(at)->release(); }});
    }

    int64_t needed_bytes() const {
        return sum([](const Entry& entry) { return entry.count; });
    }
    int64_t held_bytes() const {
        return sum([](const Entry& entry) { return entry.capacity; });
    }
    // What reserve() will leave allocated: buffers never shrink.
    int64_t bytes_afterwards() const {
        return sum([](const Entry& entry) { return std::max(entry.count, entry.capacity); });
    }
    bool is_reserved() const {
        return std::all_of(entries_.begin(), entries_.end(),
                           [](const Entry& entry) { return entry.count <= entry.capacity; });
    }

    // Buffers that are too small grow to `spare` times the count and lose their contents.
    void reserve(double spare) {
        for (Entry& entry : entries_) {
            if (entry.count <= entry.capacity) continue;
            const auto count = std::max(entry.count, static_cast<int64_t>(static_cast<double>(entry.count) * spare));
            entry.capacity = 0;  // in case the next line throws
            entry.reserve(entry.buffer, count, entry.purpose);
            entry.capacity = count;
        }
    }
    void release() {
        for (Entry& entry : entries_) {
            entry.release(entry.buffer);
            entry.capacity = 0;
        }
    }

private:
    struct Entry {
        void* buffer;
        int64_t count, capacity, item_bytes;
        const char* purpose;
        void (*reserve)(void* buffer, int64_t count, const char* purpose);
        void (*release)(void* buffer);
    };

    template <class Count>
    int64_t sum(const Count& count) const {
        int64_t bytes = 0;
        for (const Entry& entry : entries_) bytes += count(entry) * entry.item_bytes;
        return bytes;
    }

    std::vector<Entry> entries_;
};

}  // namespace mlff::gpu
