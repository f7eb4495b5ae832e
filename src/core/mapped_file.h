// SPDX-License-Identifier: MIT
// A whole file as bytes: mapped where the system supports it, otherwise read into memory.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace mlff {

using Bytes = std::span<const std::byte>;

class MappedFile {
public:
    // Throws Error{file} naming the path and the reason.
    static std::shared_ptr<const MappedFile> open(const std::string& path);
    ~MappedFile();
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;

    Bytes bytes() const { return bytes_; }
    std::string_view text() const { return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()}; }
    // Releases the memory of pages that were read. They are read again when needed.
    void drop_pages() const;

private:
    MappedFile() = default;
    Bytes bytes_;
    void* mapping_ = nullptr;
    std::unique_ptr<std::byte[]> copy_;
};

}  // namespace mlff
