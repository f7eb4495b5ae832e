// SPDX-License-Identifier: MIT
#include "formats/json_text.h"

#include <vector>

#include "core/error.h"

namespace mlff {
namespace {

constexpr size_t kMaxJsonDepth = 400;
constexpr size_t kMaxJsonValues = 4'000'000;  // a value takes about 50 bytes of memory and at least two of text

// Builds the tree from the events of nlohmann's SAX parser. Its callback parser takes time quadratic in the number of
// members.
class TreeBuilder : public nlohmann::json_sax<nlohmann::json> {
public:
    explicit TreeBuilder(const std::string& where) : where_(where) {}

    JsonValue take() { return std::move(root_); }

    bool null() override { return add(nullptr); }
    bool boolean(bool value) override { return add(value); }
    bool number_integer(number_integer_t value) override { return add(value); }
    bool number_unsigned(number_unsigned_t value) override { return add(value); }
    bool number_float(number_float_t value, const string_t&) override { return add(value); }
    bool string(string_t& value) override { return add(std::move(value)); }
    bool binary(binary_t&) override { return false; }  // does not occur in JSON text
    bool start_object(size_t) override { return open(JsonValue::Object()); }
    bool start_array(size_t) override { return open(JsonValue::Array()); }
    bool end_object() override { return close(); }
    bool end_array() override { return close(); }

    bool key(string_t& name) override {
        if (open_.back()->contains(name))
            fail(Status::format, where_, ": JSON key '", name, "' occurs twice in one object");
        place_ = &(*open_.back())[name];
        return true;
    }
    bool parse_error(size_t, const std::string&, const nlohmann::detail::exception& error) override {
        fail(Status::format, where_, ": malformed JSON: ", error.what());
    }

private:
    // The place of the next value: the root, the member of the last key, or a new element of the innermost array.
    JsonValue& put(JsonValue value) {
        if (++value_count_ > kMaxJsonValues)
            fail(Status::format, where_, ": JSON of more than ", kMaxJsonValues, " values");
        JsonValue& place = !open_.empty() && open_.back()->is_array() ? open_.back()->append() : *place_;
        place = std::move(value);
        return place;
    }
    bool add(JsonValue value) {
        put(std::move(value));
        return true;
    }
    bool open(JsonValue container) {
        if (open_.size() > kMaxJsonDepth)
            fail(Status::format, where_, ": JSON nested more than ", kMaxJsonDepth, " levels deep");
        open_.push_back(&put(std::move(container)));
        return true;
    }
    bool close() {
        open_.pop_back();
        return true;
    }

    const std::string& where_;
    JsonValue root_;
    JsonValue* place_ = &root_;
    std::vector<JsonValue*> open_;  // open containers; a container does not move while one inside it is open
    size_t value_count_ = 0;
};

}  // namespace

JsonValue parse_json(std::string_view text, const std::string& where) {
    // The parser would take a zero byte for the end and ignore the rest.
    if (text.find('\0') != std::string_view::npos) fail(Status::format, where, ": malformed JSON: a zero byte");
    TreeBuilder builder(where);
    nlohmann::json::sax_parse(text, &builder);
    return builder.take();
}

nlohmann::json parse_untrusted_json(std::string_view text, const std::string& where) { return parse_json(text, where); }

}  // namespace mlff
