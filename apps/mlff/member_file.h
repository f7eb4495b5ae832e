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

// Puts thousands of files on disk by one call. It is open during the whole run, since only what failed after it was
// opened is reported.
class SyncedFolder {
public:
    explicit SyncedFolder(std::string path);
    ~SyncedFolder();
    SyncedFolder(const SyncedFolder&) = delete;
    SyncedFolder& operator=(const SyncedFolder&) = delete;

    void sync() const;  // throws Error{file}

private:
    std::string path_;
    int descriptor_;
};

// Throws Error{file} if the file is not there, or shorter than the place where a run goes on with it.
void check_size(const std::string& path, uint64_t place);

// A restart file that is there does not belong to files that are begun anew.
void remove_old_restart(const std::string& path);

}  // namespace mlff::app
