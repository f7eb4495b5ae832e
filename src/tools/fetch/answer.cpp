// SPDX-License-Identifier: MIT
#include "tools/fetch/answer.h"

#include <algorithm>
#include <charconv>

#include "core/error.h"

namespace mlff::fetch {
namespace {

std::string_view without_spaces(std::string_view text) {
    const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
    while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
    while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
    return text;
}

bool is_header_name(std::string_view name, std::string_view expected) {
    const auto is_same = [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a + 32 : a) == b; };
    return std::equal(name.begin(), name.end(), expected.begin(), expected.end(), is_same);
}

int64_t parse_count(std::string_view text, std::string_view line) {
    int64_t value = -1;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
    if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size() || value < 0)
        fail(Status::format, "the server's answer has '", line, "', expected a number of bytes");
    return value;
}

void set_once(int64_t& value, int64_t found, std::string_view line) {
    if (value >= 0 && value != found) fail(Status::format, "the server's answer contradicts itself: '", line, "'");
    value = found;
}

// "bytes 100-199/200", "bytes 100-199/*", "bytes */200"
void parse_range(std::string_view text, std::string_view line, Answer& answer) {
    const size_t slash = text.find('/');
    if (!text.starts_with("bytes ") || slash == std::string_view::npos)
        fail(Status::format, "the server's answer has '", line, "', expected a range of bytes");
    const std::string_view range = text.substr(6, slash - 6), total = text.substr(slash + 1);
    if (range != "*") set_once(answer.range_begin, parse_count(range.substr(0, range.find('-')), line), line);
    if (total != "*") set_once(answer.total, parse_count(total, line), line);
}

}  // namespace

size_t header_size(std::string_view text) {
    for (size_t at = text.find('\n'); at != std::string_view::npos; at = text.find('\n', at + 1)) {
        if (text.substr(at + 1).starts_with("\r\n")) return at + 3;
        if (text.substr(at + 1).starts_with("\n")) return at + 2;
    }
    return 0;
}

Answer parse_answer(std::string_view header) {
    Answer answer;
    bool is_first = true;
    for (size_t begin = 0; begin < header.size();) {
        const size_t end = std::min(header.find('\n', begin), header.size());
        const std::string_view line = without_spaces(header.substr(begin, end - begin));
        begin = end + 1;
        if (is_first) {  // "HTTP/1.1 200 OK"
            const std::string_view code =
                without_spaces(line.substr(std::min(line.find(' '), line.size()))).substr(0, 3);
            const auto parsed = std::from_chars(code.data(), code.data() + code.size(), answer.status);
            if (!line.starts_with("HTTP/") || parsed.ec != std::errc() || answer.status < 100 || answer.status > 999)
                fail(Status::format, "the server's answer begins with '", line, "', expected HTTP");
            is_first = false;
            continue;
        }
        const size_t colon = line.find(':');
        if (colon == std::string_view::npos) continue;
        const std::string_view name = line.substr(0, colon), value = without_spaces(line.substr(colon + 1));
        if (is_header_name(name, "content-length")) set_once(answer.length, parse_count(value, line), line);
        if (is_header_name(name, "content-range")) parse_range(value, line, answer);
        if (is_header_name(name, "location")) answer.location = value;
    }
    if (is_first) fail(Status::format, "the server's answer is empty");
    if (answer.status == 200 && answer.length >= 0) set_once(answer.total, answer.length, "Content-Range");
    return answer;
}

}  // namespace mlff::fetch
