// SPDX-License-Identifier: MIT
// A JSON tree, used for data from model files. Unlike nlohmann's, it allocates nothing when it is destroyed, so a load
// that runs out of memory ends with an error instead of terminating the process.
#pragma once

#include <concepts>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace mlff {

class JsonValue {
public:
    using Array = std::vector<JsonValue>;
    using Object = std::map<std::string, JsonValue, std::less<>>;

    JsonValue() = default;  // null
    JsonValue(std::nullptr_t) {}
    JsonValue(std::same_as<bool> auto value) : value_(value) {}
    JsonValue(std::floating_point auto value) : value_(static_cast<double>(value)) {}
    template <std::integral T>
    requires(!std::same_as<T, bool>) JsonValue(T value) {
        if (std::in_range<int64_t>(value))
            value_ = static_cast<int64_t>(value);
        else
            value_ = static_cast<uint64_t>(value);
    }
    JsonValue(const char* text) : value_(std::string(text)) {}
    JsonValue(std::string_view text) : value_(std::string(text)) {}
    JsonValue(std::string text) : value_(std::move(text)) {}
    JsonValue(Array values) : value_(std::move(values)) {}
    JsonValue(Object members) : value_(std::move(members)) {}
    template <class T>
    JsonValue(const std::vector<T>& values) : value_(Array(values.begin(), values.end())) {}

    bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
    bool is_boolean() const { return std::holds_alternative<bool>(value_); }
    bool is_number() const { return is_number_integer() || std::holds_alternative<double>(value_); }
    bool is_number_integer() const {
        return std::holds_alternative<int64_t>(value_) || std::holds_alternative<uint64_t>(value_);
    }
    bool is_number_unsigned() const {
        return is_number_integer() && (!std::holds_alternative<int64_t>(value_) || std::get<int64_t>(value_) >= 0);
    }
    bool is_string() const { return std::holds_alternative<std::string>(value_); }
    bool is_array() const { return std::holds_alternative<Array>(value_); }
    bool is_object() const { return std::holds_alternative<Object>(value_); }

    // These throw if the value is of another kind, so check first.
    bool boolean() const { return std::get<bool>(value_); }
    const std::string& text() const { return std::get<std::string>(value_); }
    double number() const;
    int64_t integer() const { return std::get<int64_t>(value_); }  // also throws if it does not fit
    uint64_t unsigned_integer() const;                             // for is_number_unsigned()
    const Array& array() const { return std::get<Array>(value_); }
    const Object& object() const { return std::get<Object>(value_); }

    // Number of elements of an array or members of an object; 0 for anything else.
    size_t size() const;
    bool empty() const { return size() == 0; }
    // Iterates over the elements of an array; empty for anything else.
    const JsonValue* begin() const { return is_array() ? array().data() : nullptr; }
    const JsonValue* end() const { return is_array() ? array().data() + array().size() : nullptr; }
    const JsonValue& operator[](size_t i) const { return array().at(i); }
    // A member of an object. nullptr if there is none, or if this is not an object.
    const JsonValue* find(std::string_view key) const;
    bool contains(std::string_view key) const { return find(key) != nullptr; }
    const JsonValue& operator[](std::string_view key) const;  // throws if there is none

    // These turn null into an array or an object.
    void push_back(JsonValue value) { append() = std::move(value); }
    JsonValue& append();  // adds a null element
    JsonValue& operator[](std::string_view key);

    // Numbers compare by value.
    friend bool operator==(const JsonValue& a, const JsonValue& b);

    // Writes one line, or indents by this many spaces per level. Numbers read back unchanged; those that are not finite
    // become null. Bytes that are not UTF-8 become the replacement character.
    std::string dump(int indent = -1) const;

private:
    std::variant<std::monostate, bool, int64_t, uint64_t, double, std::string, Array, Object>
        value_;  // uint64_t only for numbers beyond int64_t
};

// For documents written by commands: `nlohmann::json document = value`.
void to_json(nlohmann::json& document, const JsonValue& value);

}  // namespace mlff
