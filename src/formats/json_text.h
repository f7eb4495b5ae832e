// SPDX-License-Identifier: MIT
// JSON from files we do not trust.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace mlff {

// Refuses what nlohmann's parser would let pass: duplicate keys, zero bytes and nesting deeper than 400.
// Throws Error{format}; the message begins with `where`.
nlohmann::json parse_untrusted_json(std::string_view text, const std::string& where);

}  // namespace mlff
