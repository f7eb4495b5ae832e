// SPDX-License-Identifier: MIT
// For command-line programs: detects lost output. A full disk or a closed pipe shows up only when standard output is
// flushed.
#pragma once

#include <cstdio>
#include <iostream>

namespace mlff {

// Flushes standard output. Returns false if any output was lost.
inline bool is_output_complete() {
    std::cout.flush();
    const bool is_flushed = std::fflush(stdout) == 0;
    return is_flushed && std::cout.good() && std::ferror(stdout) == 0;
}

}  // namespace mlff
