// SPDX-License-Identifier: MIT
// The one exception type of the library. src/api turns it into a status and a message.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

namespace mlff {

enum class Status : int {  // the values of mlff_status in mlff.h
    ok = 0,
    argument = 1,
    file = 2,
    format = 3,
    unsupported = 4,
    system = 5,
    device = 6,
    memory = 7,
    internal = 8,
};

class Error : public std::runtime_error {
public:
    Error(Status status, const std::string& message) : std::runtime_error(message), status_(status) {}
    Status status() const { return status_; }

private:
    Status status_;
};

// concat("atom ", 7, " of ", path): everything that has an operator<<, in one string.
template <class... Parts>
std::string concat(const Parts&... parts) {
    std::ostringstream text;
    (text << ... << parts);
    return text.str();
}

template <class... Parts>
[[noreturn]] void fail(Status status, const Parts&... parts) {
    throw Error(status, concat(parts...));
}

}  // namespace mlff
