// SPDX-License-Identifier: MIT
// The file that a download fills. It stays when the download ends early, so that the next one continues it; only one
// process has it at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace mlff::fetch {

class PartFile {
public:
    // Opens or makes it. While another process has it, calls `wait` several times a second, and gives nullopt when that
    // returns false. Throws Error{file}.
    static std::optional<PartFile> open(const std::string& path, const std::function<bool()>& wait);
    ~PartFile();
    PartFile(PartFile&& other) noexcept;
    PartFile& operator=(PartFile&&) = delete;

    const std::string& path() const { return path_; }
    int64_t size() const { return size_; }
    void write(const void* data, size_t size);  // at its end
    void clear();
    void sync();
    void remove();

private:
    PartFile(std::string path, int descriptor, int64_t size)
        : path_(std::move(path)), descriptor_(descriptor), size_(size) {}
    std::string path_;
    int descriptor_ = -1;
    int64_t size_ = 0;
};

}  // namespace mlff::fetch
