// SPDX-License-Identifier: MIT
#include "formats/yaml.h"

#include <charconv>
#include <cmath>
#include <vector>

#include "core/error.h"

namespace mlff {
namespace {

constexpr int kDeepestNesting = 50;
constexpr size_t kMostValues = 4'000'000;

struct YamlLine {
    size_t number = 0;  // from 1
    size_t indent = 0;
    std::string_view text;  // without indentation, comment and spaces at the end; never empty
};

std::string_view without_spaces(std::string_view text) {
    const size_t begin = text.find_first_not_of(' ');
    if (begin == std::string_view::npos) return {};
    return text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

// Where a comment begins, or the first of `letters`: outside of quotes.
size_t find_outside_quotes(std::string_view text, std::string_view letters) {
    char quote = 0;
    for (size_t i = 0; i < text.size(); ++i) {
        const char letter = text[i];
        if (quote) {
            if (letter == quote) quote = 0;
        } else if ((letter == '"' || letter == '\'') &&
                   (i == 0 || std::string_view(" [,").find(text[i - 1]) != std::string_view::npos)) {
            quote = letter;
        } else if (letters.find(letter) != std::string_view::npos) {
            return i;
        }
    }
    return std::string_view::npos;
}

class YamlParser {
public:
    YamlParser(std::string_view text, const std::string& where) : where_(where) {
        size_t number = 0;
        while (!text.empty()) {
            const size_t end = text.find('\n');
            add_line(text.substr(0, end), ++number);
            text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
        }
    }

    JsonValue parse() {
        if (lines_.empty()) fail(Status::format, where_, ": expected YAML, but there is nothing in it");
        JsonValue result = block(lines_.front().indent, 0);
        if (at_ < lines_.size()) refuse("a line that is not indented like the one before");
        return result;
    }

private:
    void add_line(std::string_view text, size_t number) {
        if (text.ends_with('\r')) text.remove_suffix(1);
        for (size_t from = 0; from < text.size();) {  // a comment begins at # after a space
            const size_t hash = find_outside_quotes(text.substr(from), "#");
            if (hash == std::string_view::npos) break;
            if (from + hash == 0 || text[from + hash - 1] == ' ') {
                text = text.substr(0, from + hash);
                break;
            }
            from += hash + 1;
        }
        const size_t indent = text.find_first_not_of(' ');
        if (indent == std::string_view::npos || text == "---") return;
        lines_.push_back({number, indent, without_spaces(text)});
    }

    [[noreturn]] void refuse(const std::string& what) const {
        const size_t number = lines_[std::min(at_, lines_.size() - 1)].number;
        fail(Status::format, where_, ": line ", number, ": ", what);
    }

    void count_value(int depth) {
        if (++value_count_ > kMostValues) refuse("too many values");
        if (depth > kDeepestNesting) refuse("nested too deeply");
    }

    // What begins in the current line, which is indented by `indent`.
    JsonValue block(size_t indent, int depth) {
        count_value(depth);
        const std::string_view text = lines_[at_].text;
        if (is_item(text)) return sequence(indent, depth);
        if (key_end(text) != std::string_view::npos) return mapping(indent, depth);
        JsonValue value = scalar_or_flow(text, depth);
        ++at_;
        return value;
    }

    static bool is_item(std::string_view text) { return text == "-" || text.starts_with("- "); }

    // The colon behind the key of a mapping.
    static size_t key_end(std::string_view text) {
        if (text.starts_with('[')) return std::string_view::npos;
        size_t from = 0;
        while (true) {
            const size_t colon = find_outside_quotes(text.substr(from), ":");
            if (colon == std::string_view::npos) return colon;
            from += colon;
            if (from + 1 == text.size() || text[from + 1] == ' ') return from;
            ++from;
        }
    }

    JsonValue sequence(size_t indent, int depth) {
        JsonValue::Array items;
        while (at_ < lines_.size() && lines_[at_].indent == indent && is_item(lines_[at_].text)) {
            YamlLine& line = lines_[at_];
            const size_t begin = line.text.find_first_not_of(' ', 1);
            if (begin == std::string_view::npos) {
                ++at_;
                items.push_back(at_ < lines_.size() && lines_[at_].indent > indent
                                    ? block(lines_[at_].indent, depth + 1)
                                    : JsonValue());
            } else {  // as if what follows the dash stood alone in a line
                line.indent += begin;
                line.text.remove_prefix(begin);
                items.push_back(block(line.indent, depth + 1));
            }
        }
        return items;
    }

    JsonValue mapping(size_t indent, int depth) {
        JsonValue::Object members;
        while (at_ < lines_.size() && lines_[at_].indent == indent && !is_item(lines_[at_].text)) {
            const std::string_view text = lines_[at_].text;
            const size_t colon = key_end(text);
            if (colon == std::string_view::npos) refuse("expected 'key: value'");
            const std::string_view rest = without_spaces(text.substr(colon + 1));
            const std::string key = unquoted(text.substr(0, colon));
            if (members.contains(key)) refuse("the key '" + key + "' is there twice");
            JsonValue value;
            if (!rest.empty()) {
                count_value(depth);
                value = scalar_or_flow(rest, depth);
                ++at_;
            } else if (++at_; at_ < lines_.size() && (lines_[at_].indent > indent ||
                                                      (lines_[at_].indent == indent && is_item(lines_[at_].text)))) {
                value = block(lines_[at_].indent, depth + 1);
            }
            members.emplace(key, std::move(value));
        }
        return members;
    }

    static std::string unquoted(std::string_view text) {
        text = without_spaces(text);
        if (text.size() >= 2 && (text.front() == '"' || text.front() == '\'') && text.back() == text.front())
            text = text.substr(1, text.size() - 2);
        return std::string(text);
    }

    JsonValue scalar_or_flow(std::string_view text, int depth) {
        if (!text.starts_with('[')) return scalar(text);
        JsonValue result = flow(text, depth + 1);
        if (!without_spaces(text).empty()) refuse("expected nothing behind ']'");
        return result;
    }

    // Takes "[...]" from the beginning of the text.
    JsonValue flow(std::string_view& text, int depth) {
        count_value(depth);
        JsonValue::Array items;
        text.remove_prefix(1);
        while (true) {
            text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
            if (text.starts_with('[')) {
                items.push_back(flow(text, depth + 1));
            } else if (!text.starts_with(']')) {
                const size_t end = find_outside_quotes(text, ",]");
                if (end == std::string_view::npos) refuse("expected ']' in the same line");
                count_value(depth);
                items.push_back(scalar(text.substr(0, end)));
                text.remove_prefix(end);
            }
            text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
            if (text.empty()) refuse("expected ']' in the same line");
            const char next = text.front();
            if (next != ',' && next != ']') refuse("expected ',' or ']'");
            text.remove_prefix(1);
            if (next == ']') return items;
        }
    }

    JsonValue scalar(std::string_view text) const {
        text = without_spaces(text);
        if (text.empty()) refuse("expected a value");
        if (std::string_view("&*!|>{}@`%").find(text.front()) != std::string_view::npos)
            refuse("expected a number or text without YAML's special letters");
        if (text.front() == '"' || text.front() == '\'') return unquoted(text);
        if (text == "~" || text == "null") return {};
        if (text == "true" || text == "false") return text == "true";
        const std::string_view digits = text.starts_with('+') ? text.substr(1) : text;
        const char* const end = digits.data() + digits.size();
        int64_t whole = 0;
        if (const auto read = std::from_chars(digits.data(), end, whole); read.ec == std::errc() && read.ptr == end)
            return whole;
        double number = 0;
        if (const auto read = std::from_chars(digits.data(), end, number);
            read.ec == std::errc() && read.ptr == end && std::isfinite(number))
            return number;
        return text;
    }

    const std::string& where_;
    std::vector<YamlLine> lines_;
    size_t at_ = 0, value_count_ = 0;
};

}  // namespace

JsonValue parse_yaml(std::string_view text, const std::string& where) { return YamlParser(text, where).parse(); }

}  // namespace mlff
