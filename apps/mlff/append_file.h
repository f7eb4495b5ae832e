// SPDX-License-Identifier: MIT
// A file that grows during a run and can be gone on with after an interruption, from a place that was on disk.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace mlff::app {

class AppendFile {
public:
    // Begins the file anew or, given a place, cuts off what comes after it. Throws Error{file}, naming the path.
    AppendFile(const std::string& path, std::optional<uint64_t> go_on_at);
    ~AppendFile();
    AppendFile(const AppendFile&) = delete;
    AppendFile& operator=(const AppendFile&) = delete;

    void write(std::string_view text);  // throws Error{file} (disk full, say)
    uint64_t size() const { return size_; }
    uint64_t sync();  // all that was written is on disk; its size

private:
    std::string path_;
    int descriptor_ = -1;
    uint64_t size_ = 0;
};

}  // namespace mlff::app
