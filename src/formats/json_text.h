// SPDX-License-Identifier: MIT
// JSON from files we do not trust.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "formats/json_value.h"

namespace mlff {

// Refuses what nlohmann's parser would let pass: duplicate keys, zero bytes, nesting deeper than 400 and more than 4
// million values. Takes time and memory in proportion to the text. Throws Error{format}; the message begins with
// `where`.
JsonValue parse_json(std::string_view text, const std::string& where);

// The same for commands, which have their documents from nlohmann.
nlohmann::json parse_untrusted_json(std::string_view text, const std::string& where);

}  // namespace mlff
