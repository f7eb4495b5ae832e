// SPDX-License-Identifier: MIT
// Addresses that files may be downloaded from: https, and http on this machine.
#pragma once

#include <string>

namespace mlff::fetch {

struct Address {
    std::string scheme;     // "https" or "http"
    std::string authority;  // "github.com", "127.0.0.1:8000"
    std::string rest;       // "/ACEsuit/...", with the question mark and what follows; not empty
    bool is_loopback = false;

    std::string text() const { return scheme + "://" + authority + rest; }
    std::string file_name() const;  // the last part of the path, without what follows a question mark
};

// Throws Error{argument} for anything else, and for user names and characters that no address has.
Address parse_address(const std::string& text);

// Where the Location of an answer leads to. Throws Error{file} unless it is https, or from this machine to this
// machine.
Address redirected(const Address& from, const std::string& location);

}  // namespace mlff::fetch
