// SPDX-License-Identifier: MIT
// Reads the part of YAML that programs write for data: block mappings and sequences by indentation, flow sequences
// [a, b] in one line, plain and quoted scalars, comments. The file may be hostile.
#pragma once

#include <string>
#include <string_view>

#include "formats/json_value.h"

namespace mlff {

// Throws Error{format} naming `where` and the line for anything else, such as tags, anchors, block scalars and flow
// mappings, and for duplicate keys, nesting deeper than 50 and more than 4 million values.
JsonValue parse_yaml(std::string_view text, const std::string& where);

}  // namespace mlff
