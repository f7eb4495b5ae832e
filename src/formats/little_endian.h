// SPDX-License-Identifier: MIT
// Reads little-endian numbers and text at byte offsets. The caller checks the bounds.
#pragma once

#include <bit>
#include <cstring>
#include <string_view>

#include "core/mapped_file.h"

namespace mlff {

template <class T>
T byte_swapped(T value) {
    std::byte raw[sizeof(T)];
    std::memcpy(raw, &value, sizeof(T));
    for (size_t i = 0; i < sizeof(T) / 2; ++i) std::swap(raw[i], raw[sizeof(T) - 1 - i]);
    std::memcpy(&value, raw, sizeof(T));
    return value;
}

template <class T>
T load_le(Bytes bytes, size_t offset) {
    T value;
    std::memcpy(&value, bytes.data() + offset, sizeof(T));
    return std::endian::native == std::endian::little ? value : byte_swapped(value);
}

inline std::string_view text_at(Bytes bytes, size_t offset, size_t length) {
    return {reinterpret_cast<const char*>(bytes.data()) + offset, length};
}

}  // namespace mlff
