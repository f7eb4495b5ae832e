// SPDX-License-Identifier: MIT
// Reads untrusted text as UTF-8, one character at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace mlff {

// Number of bytes of the UTF-8 character at `at`. 0 if there is none: a stray byte, an overlong form, a surrogate, or a
// character cut off by the end of the text.
inline size_t utf8_length(std::string_view text, size_t at) {
    const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[at + i]); };
    const unsigned lead = byte(0);
    const size_t length = lead < 0x80                   ? 1
                          : lead >= 0xc2 && lead < 0xe0 ? 2
                          : lead >= 0xe0 && lead < 0xf0 ? 3
                          : lead >= 0xf0 && lead < 0xf5 ? 4
                                                        : 0;
    if (length == 0 || length > text.size() - at) return 0;
    for (size_t k = 1; k < length; ++k)
        if ((byte(k) & 0xc0) != 0x80) return 0;
    const unsigned second = length > 1 ? byte(1) : 0;
    if ((lead == 0xe0 && second < 0xa0) || (lead == 0xed && second > 0x9f) || (lead == 0xf0 && second < 0x90) ||
        (lead == 0xf4 && second > 0x8f))
        return 0;
    return length;
}

inline bool is_utf8(std::string_view text) {
    for (size_t at = 0; at < text.size();) {
        const size_t length = utf8_length(text, at);
        if (length == 0) return false;
        at += length;
    }
    return true;
}

// Makes text safe for terminals: replaces control characters, including those beyond ASCII and stray bytes, by '?'.
// Everything else stays as it is.
inline std::string printable(std::string_view text) {
    std::string result;
    result.reserve(text.size());
    for (size_t at = 0; at < text.size();) {
        const size_t length = utf8_length(text, at), next = at + std::max<size_t>(length, 1);
        const auto first = static_cast<unsigned char>(text[at]), last = static_cast<unsigned char>(text[next - 1]);
        const bool is_control = first < 0x20 || first == 0x7f || (length == 0 && first < 0xa0) ||
                                (length == 2 && first == 0xc2 && last < 0xa0);
        result += is_control ? std::string_view("?") : text.substr(at, next - at);
        at = next;
    }
    return result;
}

}  // namespace mlff
