// SPDX-License-Identifier: MIT
// Parses JSON from untrusted files.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "formats/json_value.h"

namespace mlff {

// Rejects what nlohmann's parser would accept: duplicate keys, zero bytes, nesting deeper than 400, and more than 4
// million values. Time and memory are linear in the text. Throws Error{format}; the message begins with `where`.
JsonValue parse_json(std::string_view text, const std::string& where);

// The same for commands, which use nlohmann's documents.
nlohmann::json parse_untrusted_json(std::string_view text, const std::string& where);

}  // namespace mlff
