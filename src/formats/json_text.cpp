// SPDX-License-Identifier: MIT
#include "formats/json_text.h"

#include <unordered_set>
#include <vector>

#include "core/error.h"

namespace mlff {

using Json = nlohmann::json;

Json parse_untrusted_json(std::string_view text, const std::string& where) {
    constexpr int kMaxDepth = 400;
    std::vector<std::unordered_set<std::string>> keys;  // of the objects that are open
    const Json::parser_callback_t check = [&](int depth, Json::parse_event_t event, Json& value) {
        if (depth > kMaxDepth) fail(Status::format, where, ": JSON nested more than ", kMaxDepth, " levels deep");
        if (event == Json::parse_event_t::object_start) keys.emplace_back();
        if (event == Json::parse_event_t::object_end) keys.pop_back();
        if (event == Json::parse_event_t::key && !keys.back().insert(value.get<std::string>()).second)
            fail(Status::format, where, ": JSON key '", value.get<std::string>(), "' occurs twice in one object");
        return true;
    };
    // The parser would take a zero byte for the end and ignore the rest.
    if (text.find('\0') != std::string_view::npos) fail(Status::format, where, ": malformed JSON: a zero byte");
    try {
        return Json::parse(text, check);
    } catch (const Json::exception& error) {
        fail(Status::format, where, ": malformed JSON: ", error.what());
    }
}

}  // namespace mlff
