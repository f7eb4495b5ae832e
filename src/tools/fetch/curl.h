// SPDX-License-Identifier: MIT
// One run of the command curl: its output is read while it runs.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

namespace mlff::fetch {

class Curl {
public:
    // Starts it, without a shell. Its standard input is empty. Throws Error{memory}.
    explicit Curl(const std::vector<std::string>& arguments);
    ~Curl();  // ends it if it still runs
    Curl(const Curl&) = delete;
    Curl& operator=(const Curl&) = delete;

    enum class Read { bytes, nothing_yet, end };
    // Appends what comes within about a fifth of a second.
    Read read(std::string& output);

    // After Read::end. kNotStarted = there is no curl; -1 = a signal ended it.
    int exit_code();
    static constexpr int kNotStarted = 127;
    std::string complaint() const;  // the first line of what it said on standard error

private:
    pid_t process_ = -1;
    int output_ = -1, errors_ = -1;
    std::string complaints_;
};

}  // namespace mlff::fetch
