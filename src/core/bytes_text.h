// SPDX-License-Identifier: MIT
// A number of bytes for people; JSON has exact numbers.
#pragma once

#include <cmath>
#include <cstdio>
#include <string>

namespace mlff {

// "512 B", "5.0 MB", "31.2 GB"; 1 kB is 1000 B, as for --gpu-memory.
template <class Number>
std::string bytes_text(Number count) {
    const auto bytes = static_cast<double>(count);
    const double size = std::abs(bytes);
    char text[48];
    if (size < 999.5)
        std::snprintf(text, sizeof text, "%.0f B", bytes);
    else if (size < 999.95e3)
        std::snprintf(text, sizeof text, "%.1f kB", bytes / 1e3);
    else if (size < 999.95e6)
        std::snprintf(text, sizeof text, "%.1f MB", bytes / 1e6);
    else
        std::snprintf(text, sizeof text, "%.1f GB", bytes / 1e9);
    return text;
}

}  // namespace mlff
