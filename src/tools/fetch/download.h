// SPDX-License-Identifier: MIT
// Downloads a file with the command curl, which knows proxies and certificates. It runs without a shell, follows no
// redirects by itself and writes no files: what it prints is checked and counted here.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "tools/fetch/address.h"
#include "tools/fetch/part_file.h"

namespace mlff::fetch {

struct DownloadOptions {
    int64_t size = 0;                                         // of the file; 0 = not known
    int64_t limit = 0;                                        // more bytes than this are refused
    double patience_seconds = 60;                             // without as much as a kilobyte
    int retries = 3;                                          // after attempts that bring less than a megabyte
    std::function<bool()> is_stopped = [] { return false; };  // asked several times a second
    std::function<void(int64_t done, int64_t total)> show_progress = [](int64_t, int64_t) {};  // total 0 = not known
    std::function<void(const std::string& sentence)> tell = [](const std::string&) {};         // of what is tried again
};

// What only the network is to blame for, and curl if it is missing: the file can still be brought some other way.
struct NotReached {
    std::string why;
};
struct Stopped {};  // is_stopped() returned true

// Appends to `part` what it lacks of the file. Throws NotReached and Stopped, which leave the part for the next time,
// and Error{file} or {format} if the server has no such file or another one.
void download(const Address& address, PartFile& part, const DownloadOptions& options);

}  // namespace mlff::fetch
