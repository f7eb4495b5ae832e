// SPDX-License-Identifier: MIT
// Our own tree of JSON: what is written is what nlohmann reads, and the other way round.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/utf8.h"
#include "formats/json_text.h"

using namespace mlff;

namespace {

// Every kind of value, nested.
JsonValue all_kinds() {
    return JsonValue::Object{{"null", nullptr},
                             {"flags", JsonValue::Array{true, false}},
                             {"whole", JsonValue::Array{0, -1, INT64_MIN, INT64_MAX, UINT64_MAX}},
                             {"real", JsonValue::Array{0.0, -0.5, 0.1, 5.0, 1e300, 5e-324, 1e5, 123456789.0}},
                             {"text", "a \"quoted\" \\ line\n\t\x01, Gr\xc3\xb6\xc3\x9f\x65"},
                             {"empty", JsonValue::Array{JsonValue::Array(), JsonValue::Object(), ""}},
                             {"list", std::vector<int>{1, 2, 3}}};
}

}  // namespace

TEST_CASE("JSON is written and read without loss") {
    const JsonValue value = all_kinds();
    for (const int indent : {-1, 0, 2}) {
        CAPTURE(indent);
        const std::string text = value.dump(indent);
        CHECK(parse_json(text, "x") == value);
        CHECK(nlohmann::json::parse(text) == nlohmann::json(value));
        CHECK(parse_json(nlohmann::json(value).dump(indent), "x") == value);
    }
    CHECK(JsonValue(JsonValue::Object{{"a", JsonValue::Array{1, 2.0}}}).dump() == "{\"a\":[1,2.0]}");
    CHECK(JsonValue(JsonValue::Object{{"a", JsonValue::Array{1}}}).dump(1) == "{\n \"a\": [\n  1\n ]\n}");
    CHECK(parse_json("5.0", "x").is_number());
    CHECK(!parse_json("5.0", "x").is_number_integer());
    CHECK(parse_json("5.0", "x") == JsonValue(5));
    CHECK(parse_json("5", "x") != JsonValue("5"));
}

TEST_CASE("what JSON cannot say becomes null or the replacement character") {
    for (const double value : {std::nan(""), HUGE_VAL, -HUGE_VAL}) CHECK(JsonValue(value).dump() == "null");
    const std::string odd =
        "a\xff\xc3z\xed\xa0\x80\xf0\x9f\x98\x80";  // stray bytes, a surrogate, a character of four bytes
    CHECK(!is_utf8(odd));
    CHECK(JsonValue(odd).dump() == nlohmann::json(odd).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

TEST_CASE("members and elements are found, and what is not there is said") {
    JsonValue value;
    value["list"].push_back(7);
    value["list"].push_back("x");
    CHECK(value.size() == 1);
    CHECK(value["list"].size() == 2);
    const JsonValue& same = value;
    CHECK(same["list"][1].text() == "x");
    CHECK(same.find("other") == nullptr);
    CHECK(same["list"].find("other") == nullptr);
    CHECK_THROWS_AS(same["other"], Error);
    CHECK_THROWS(same["list"].number());
    int count = 0;
    for ([[maybe_unused]] const JsonValue& one : same["list"]) ++count;
    for ([[maybe_unused]] const JsonValue& one : same) ++count;  // an object has no elements
    CHECK(count == 2);
}

TEST_CASE("control characters are not printed, and all else is") {
    CHECK(printable("Gr\xc3\xb6\xc3\x9f\x65 \xe2\x88\x9e \xf0\x9f\x98\x80 \xff") ==
          "Gr\xc3\xb6\xc3\x9f\x65 \xe2\x88\x9e \xf0\x9f\x98\x80 \xff");
    CHECK(printable("a\x1b[2J\n\x7f\xc2\x9b\x9b\xc2\xa0") == "a?[2J????\xc2\xa0");
    CHECK(printable("") == "");
}
