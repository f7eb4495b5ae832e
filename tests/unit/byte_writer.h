// SPDX-License-Identifier: MIT
// Composes files byte by byte, so that tests can make broken ones.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/mapped_file.h"

namespace mlff::test {

inline Bytes as_bytes(std::string_view text) { return {reinterpret_cast<const std::byte*>(text.data()), text.size()}; }

// `width` bytes of a number, the lowest first.
inline std::string little_endian(uint64_t value, int width) {
    std::string bytes;
    for (int i = 0; i < width; ++i) bytes.push_back(static_cast<char>(value >> (8 * i)));
    return bytes;
}

class ByteWriter {
public:
    ByteWriter& u8(uint64_t value) { return text(little_endian(value, 1)); }
    ByteWriter& u16(uint64_t value) { return text(little_endian(value, 2)); }
    ByteWriter& u32(uint64_t value) { return text(little_endian(value, 4)); }
    ByteWriter& u64(uint64_t value) { return text(little_endian(value, 8)); }
    ByteWriter& text(std::string_view bytes) {
        bytes_ += bytes;
        return *this;
    }
    size_t size() const { return bytes_.size(); }
    const std::string& bytes() const { return bytes_; }

private:
    std::string bytes_;
};

}  // namespace mlff::test
