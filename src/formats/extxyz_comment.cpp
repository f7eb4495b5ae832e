// SPDX-License-Identifier: MIT
#include "formats/extxyz_comment.h"

#include <unordered_set>

#include "core/error.h"

namespace mlff::extxyz {
namespace {

constexpr std::string_view kJsonMark = "_JSON ";  // ASE's prefix for values that are not plain numbers or text
constexpr size_t kMaxArrayDepth = 16;

bool is_key_character(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

// Quotes and brackets may begin anywhere in a word, as in ASE: a"b c"d is the word `ab cd`.
class CommentScanner {
public:
    explicit CommentScanner(const SourceLine& line) : line_(line), text_(line.text) {}

    bool next(CommentEntry& entry) {
        skip_blanks();
        if (cursor_ == text_.size()) return false;
        entry = CommentEntry{};
        entry.key_offset = cursor_;
        Word key = read_word(/*is_key=*/true);
        if (key.text.empty())
            line_.fail_at(entry.key_offset, "expected a key, found " + shown(text_.substr(entry.key_offset, 1)));
        entry.key = std::move(key.text);
        entry.value_offset = cursor_;
        const size_t key_end = cursor_;
        skip_blanks();
        entry.is_flag = cursor_ == text_.size() || text_[cursor_] != '=';
        if (entry.is_flag) {
            cursor_ = key_end;
            return true;
        }
        const size_t after_equals = ++cursor_;
        skip_blanks();
        entry.value_offset = cursor_;
        // ASE writes an empty text as nothing, `name= pbc="T T T"`: the next pair must not become its value.
        if (cursor_ == text_.size() || (cursor_ > after_equals && at_key_with_value())) return true;
        Word value = read_word(/*is_key=*/false);
        entry.text = std::move(value.text);
        entry.brackets = value.brackets;
        entry.value_offset = value.content_offset;
        return true;
    }

private:
    struct Word {
        std::string text;
        std::string_view brackets;
        size_t content_offset = 0;
    };

    void skip_blanks() {
        while (cursor_ < text_.size() && is_space(text_[cursor_])) ++cursor_;
    }

    bool at_key_with_value() const {
        size_t end = cursor_;
        while (end < text_.size() && is_key_character(text_[end])) ++end;
        return end > cursor_ && end < text_.size() && text_[end] == '=';
    }

    Word read_word(bool is_key) {
        Word word;
        const size_t begin = cursor_;
        word.content_offset = begin;
        while (cursor_ < text_.size()) {
            const char c = text_[cursor_];
            if (is_space(c) || (is_key && c == '=')) break;
            if (c == '"' || c == '\'' || c == '[' || c == '{') {
                const size_t open = cursor_;
                if (open == begin) word.content_offset = begin + 1;
                if (c == '"' || c == '\'')
                    read_quoted(c, word.text);
                else
                    read_bracketed(c, word.text);
                if (open == begin && (c == '[' || c == '{')) word.brackets = text_.substr(begin, cursor_ - begin);
            } else {
                read_character(word.text);
            }
        }
        if (word.brackets.size() != cursor_ - begin) word.brackets = {};
        return word;
    }

    void read_character(std::string& out) {
        char c = text_[cursor_++];
        if (c == '\\') {
            if (cursor_ == text_.size()) line_.fail_at(cursor_ - 1, "expected a character after this backslash");
            c = text_[cursor_++];
            if (c == 'n') c = '\n';
        }
        out += c;
    }

    void read_quoted(char quote, std::string& out) {
        const size_t open = cursor_++;
        while (cursor_ < text_.size() && text_[cursor_] != quote) read_character(out);
        if (cursor_ == text_.size()) line_.fail_at(open, "this quote is never closed");
        ++cursor_;
    }

    void read_bracketed(char open_bracket, std::string& out) {
        const char close_bracket = open_bracket == '[' ? ']' : '}';
        const size_t open = cursor_;
        size_t depth = 0;
        bool in_quotes = false;
        do {
            if (cursor_ == text_.size()) line_.fail_at(open, "this bracket is never closed");
            const char c = text_[cursor_];
            if (c == '"') in_quotes = !in_quotes;
            if (!in_quotes && c == open_bracket) ++depth;
            if (!in_quotes && c == close_bracket) --depth;
            const bool is_outer = cursor_ == open || depth == 0;
            if (is_outer)
                ++cursor_;
            else
                read_character(out);
        } while (depth > 0);
    }

    const SourceLine& line_;
    std::string_view text_;
    size_t cursor_ = 0;
};

bool mentions_structure(std::string_view text) {
    for (const std::string_view key : {"Lattice", "Properties", "pbc"}) {
        for (size_t at = text.find(key); at != std::string_view::npos; at = text.find(key, at + key.size())) {
            const size_t next = text.find_first_not_of(" \t\"'", at + key.size());
            if (next != std::string_view::npos && text[next] == '=') return true;
        }
    }
    return false;
}

InfoValue scalar_text(std::string_view text) { return {std::vector<std::string>{std::string(text)}, {}}; }

// Words such as 1d3 are more often names than Fortran numbers, so in the comment line Fortran numbers need a decimal
// point.
bool is_info_real(std::string_view word, double& value) {
    if (word.find_first_of("dD") != std::string_view::npos && word.find('.') == std::string_view::npos) return false;
    return parse_real(word, value) == NumberStatus::ok;
}

// Reads all words as whole numbers, else all as real numbers, else all as flags; false if none of these fits.
bool read_words(const std::vector<std::string_view>& words, InfoValue& result) {
    std::vector<int64_t> integers;
    for (int64_t value; const std::string_view word : words) {
        if (parse_integer(word, value) != NumberStatus::ok) break;
        integers.push_back(value);
    }
    if (!words.empty() && integers.size() == words.size()) {
        result.values = std::move(integers);
        return true;
    }
    std::vector<double> reals;
    for (double value; const std::string_view word : words) {
        if (!is_info_real(word, value)) break;
        reals.push_back(value);
    }
    if (reals.size() == words.size()) {
        result.values = std::move(reals);
        return true;
    }
    std::vector<bool> flags;
    for (const std::string_view word : words) {
        const std::optional<bool> value = parse_logical(word);
        if (!value) return false;
        flags.push_back(*value);
    }
    result.values = std::move(flags);
    return true;
}

void append_utf8(std::string& out, uint32_t code) {
    const auto add = [&](uint32_t byte) { out += static_cast<char>(byte); };
    if (code < 0x80) {
        add(code);
    } else if (code < 0x800) {
        add(0xc0 | (code >> 6));
        add(0x80 | (code & 0x3f));
    } else if (code < 0x10000) {
        add(0xe0 | (code >> 12));
        add(0x80 | ((code >> 6) & 0x3f));
        add(0x80 | (code & 0x3f));
    } else {
        add(0xf0 | (code >> 18));
        add(0x80 | ((code >> 12) & 0x3f));
        add(0x80 | ((code >> 6) & 0x3f));
        add(0x80 | (code & 0x3f));
    }
}

// The four hexadecimal digits at `cursor`, or -1.
int64_t read_hex4(std::string_view text, size_t& cursor) {
    if (text.size() - cursor < 4) return -1;
    int64_t code = 0;
    for (const char c : text.substr(cursor, 4)) {
        const size_t digit = std::string_view("0123456789abcdef").find(static_cast<char>(c | 0x20));
        if (digit == std::string_view::npos || c < '0') return -1;
        code = code * 16 + static_cast<int64_t>(digit);
    }
    cursor += 4;
    return code;
}

// Reads the JSON string that begins at `cursor`, and moves `cursor` past its closing quote.
std::optional<std::string> read_json_string(std::string_view text, size_t& cursor) {
    constexpr std::string_view kEscapes = "\"\\/bfnrt";
    constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
    std::string out;
    for (++cursor; cursor < text.size();) {
        const char c = text[cursor++];
        if (c == '"') return out;
        if (c != '\\') {
            out += c;
            continue;
        }
        if (cursor == text.size()) return std::nullopt;
        const char escape = text[cursor++];
        if (escape != 'u') {
            const size_t which = kEscapes.find(escape);
            if (which == std::string_view::npos) return std::nullopt;
            out += kMeanings[which];
            continue;
        }
        int64_t code = read_hex4(text, cursor);
        if (code >= 0xd800 && code < 0xdc00 && text.substr(cursor, 2) == "\\u") {
            cursor += 2;
            const int64_t low = read_hex4(text, cursor);
            code = low >= 0xdc00 && low < 0xe000 ? 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00) : -1;
        }
        if (code < 0 || (code >= 0xd800 && code < 0xe000)) return std::nullopt;
        append_utf8(out, static_cast<uint32_t>(code));
    }
    return std::nullopt;
}

// Reads [[1, 2], [3, 4]]: all elements at the same depth and of one kind, all rows of the same length. Otherwise
// returns nothing.
std::optional<InfoValue> read_array(std::string_view text, char open, char close) {
    constexpr int64_t kNotKnown = -1;
    std::vector<int64_t> counts;  // elements so far of each array that is open
    std::vector<int64_t> shape;
    size_t element_depth = 0;
    std::vector<std::string_view> words;
    std::vector<std::string> texts;
    for (size_t cursor = 0; cursor < text.size();) {
        const char c = text[cursor];
        if (is_space(c) || c == ',') {
            ++cursor;
        } else if (c == open) {
            ++cursor;
            if (cursor > 1 && counts.empty()) return std::nullopt;
            if (!counts.empty()) ++counts.back();
            counts.push_back(0);
            if (counts.size() > kMaxArrayDepth) return std::nullopt;
            if (counts.size() > shape.size()) shape.push_back(kNotKnown);
        } else if (counts.empty()) {
            return std::nullopt;
        } else if (c == close) {
            ++cursor;
            int64_t& length = shape[counts.size() - 1];
            if (length != kNotKnown && length != counts.back()) return std::nullopt;
            length = counts.back();
            counts.pop_back();
        } else {
            if (element_depth != 0 && element_depth != counts.size()) return std::nullopt;
            element_depth = counts.size();
            ++counts.back();
            if (c == '"') {
                std::optional<std::string> element = read_json_string(text, cursor);
                if (!element) return std::nullopt;
                texts.push_back(std::move(*element));
            } else {
                const size_t begin = cursor;
                while (cursor < text.size() && !is_space(text[cursor]) &&
                       std::string_view(",\"[]{}").find(text[cursor]) == std::string_view::npos)
                    ++cursor;
                if (cursor == begin) return std::nullopt;
                words.push_back(text.substr(begin, cursor - begin));
            }
        }
    }
    if (!counts.empty() || (element_depth != 0 && element_depth != shape.size())) return std::nullopt;
    InfoValue result;
    result.shape = std::move(shape);
    if (!texts.empty()) {
        if (!words.empty()) return std::nullopt;
        result.values = std::move(texts);
    } else if (!read_words(words, result)) {
        return std::nullopt;
    }
    return result;
}

std::optional<InfoValue> read_json(std::string_view text) {
    if (text.empty()) return std::nullopt;
    if (text[0] == '[') return read_array(text, '[', ']');
    if (text[0] == '"') {
        size_t cursor = 0;
        const std::optional<std::string> decoded = read_json_string(text, cursor);
        if (decoded && cursor == text.size()) return scalar_text(*decoded);
    }
    return std::nullopt;
}

}  // namespace

std::vector<CommentEntry> parse_comment(const SourceLine& line) {
    const bool may_be_free_text = !mentions_structure(line.text);
    std::vector<CommentEntry> entries;
    std::unordered_set<std::string> keys;
    CommentScanner scanner(line);
    try {
        for (CommentEntry entry; scanner.next(entry);) {
            if (keys.insert(entry.key).second)
                entries.push_back(std::move(entry));
            else if (!may_be_free_text)
                line.fail_at(entry.key_offset, "the key " + shown(entry.key) + " occurs twice");
        }
    } catch (const Error&) {
        if (!may_be_free_text) throw;
    }
    return entries;
}

bool is_always_text(std::string_view key) {
    return key.size() == 3 && (key[0] | 0x20) == 'u' && (key[1] | 0x20) == 'i' && (key[2] | 0x20) == 'd';
}

InfoValue interpret_text(std::string_view key, std::string_view text) {
    if (is_always_text(key)) return scalar_text(text);
    if (text.substr(0, kJsonMark.size()) == kJsonMark)
        return read_json(text.substr(kJsonMark.size())).value_or(scalar_text(text));
    std::vector<std::string_view> words;
    for (size_t cursor = 0; cursor < text.size();) {
        const size_t begin = cursor;
        while (cursor < text.size() && !is_space(text[cursor]) && text[cursor] != ',') ++cursor;
        if (cursor > begin)
            words.push_back(text.substr(begin, cursor - begin));
        else
            ++cursor;
    }
    InfoValue result;
    if (words.empty() || !read_words(words, result)) return scalar_text(text);
    if (words.size() > 1) result.shape = {static_cast<int64_t>(words.size())};
    return result;
}

InfoValue interpret(const CommentEntry& entry) {
    if (entry.is_flag) return {std::vector<bool>{true}, {}};
    if (entry.brackets.empty()) return interpret_text(entry.key, entry.text);
    const char open = entry.brackets[0];
    const bool is_old_style = open == '{' && entry.brackets.find('{', 1) == std::string_view::npos;
    if (is_old_style) return interpret_text(entry.key, entry.text);
    return read_array(entry.brackets, open, open == '[' ? ']' : '}').value_or(scalar_text(entry.text));
}

}  // namespace mlff::extxyz
