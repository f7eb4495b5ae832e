// SPDX-License-Identifier: MIT
// Files of one of many structures.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace mlff::app {

// Is open only while text is added, since a process may not have thousands of files open.
class MemberFile {
public:
    // Begins the file anew or, given a place, cuts off what comes after it. Throws Error{file}, naming the path.
    MemberFile(std::string path, std::optional<uint64_t> go_on_at);
    void add(std::string_view text);
    // What was added is in the file, but not yet on disk. Its size.
    uint64_t flush();

private:
    void append(std::string_view text);

    std::string path_, waiting_;
    std::optional<uint64_t> size_;  // nothing before the file is there
};

// All files of the folder are on disk: one call for thousands of them.
void sync_files_of(const std::string& folder);

}  // namespace mlff::app
