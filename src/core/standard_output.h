// SPDX-License-Identifier: MIT
// For programs: a full disk or a closed pipe behind standard output shows itself only when what was written there is
// flushed.
#pragma once

#include <cstdio>
#include <iostream>

namespace mlff {

// Flushes it. False if something that was written there is lost.
inline bool is_output_complete() {
    std::cout.flush();
    const bool is_flushed = std::fflush(stdout) == 0;
    return is_flushed && std::cout.good() && std::ferror(stdout) == 0;
}

}  // namespace mlff
