// SPDX-License-Identifier: MIT
// The header of the answer of a web server, which nobody vouches for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace mlff::fetch {

struct Answer {
    int status = 0;            // 200, 404
    std::string location;      // of a redirect; "" = none
    int64_t length = -1;       // bytes that follow; -1 = not said
    int64_t range_begin = -1;  // where in the file they begin; -1 = not said
    int64_t total = -1;        // bytes of the whole file; -1 = not said
};

// Size of the first header in `text`, with the empty line that ends it; 0 if it has no end.
size_t header_size(std::string_view text);

// Throws Error{format} for what is no header, for numbers that are none and for lines that contradict each other.
Answer parse_answer(std::string_view header);

}  // namespace mlff::fetch
