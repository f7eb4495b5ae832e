// SPDX-License-Identifier: MIT
#include "committee/member_list.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/error.h"
#include "core/utf8.h"

namespace mlff {
namespace {

constexpr std::string_view kFirstLine = "mlff committee";
constexpr std::string_view kWeight = "weight=";
constexpr std::string_view kSpaces = " \t\r";
constexpr size_t kLargestFile = 1 << 20;

std::string_view without_spaces(std::string_view text) {
    const size_t begin = text.find_first_not_of(kSpaces);
    if (begin == std::string_view::npos) return {};
    return text.substr(begin, text.find_last_not_of(kSpaces) - begin + 1);
}

// A '#' begins a comment at the beginning of a line and after a space; a name may have one inside.
std::string_view without_comment(std::string_view line) {
    for (size_t at = line.find('#'); at != std::string_view::npos; at = line.find('#', at + 1))
        if (at == 0 || kSpaces.find(line[at - 1]) != std::string_view::npos) return line.substr(0, at);
    return line;
}

double parse_weight(std::string_view text, const std::string& where) {
    double weight = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), weight);
    if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(weight) || !(weight > 0))
        fail(Status::format, where, ": the weight is not a number above 0");
    return weight;
}

ListedMember parse_member(std::string_view line, const std::string& where) {
    ListedMember member;
    const size_t space = line.find_last_of(kSpaces);
    const size_t last_word = space == std::string_view::npos ? 0 : space + 1;
    if (line.substr(last_word).starts_with(kWeight)) {
        member.weight = parse_weight(line.substr(last_word + kWeight.size()), where);
        line = without_spaces(line.substr(0, last_word));
    }
    if (line.empty()) fail(Status::format, where, ": a weight has no member before it");
    member.name = line;
    return member;
}

}  // namespace

bool is_member_list(std::string_view text) {
    if (!text.starts_with(kFirstLine)) return false;  // before anything else: a model's file may be large
    return without_spaces(text.substr(0, text.find('\n'))) == kFirstLine;
}

std::vector<ListedMember> parse_member_list(std::string_view text, const std::string& where) {
    if (!is_member_list(text)) fail(Status::format, where, ": its first line is not '", kFirstLine, "'");
    if (text.size() > kLargestFile)
        fail(Status::format, where, ": a list of members with ", text.size(), " bytes, expected ", kLargestFile,
             " at most");
    if (text.find('\0') != std::string_view::npos || !is_utf8(text))
        fail(Status::format, where, ": the list of members is not UTF-8 text");
    std::vector<ListedMember> members;
    int64_t line_number = 1;
    for (size_t begin = text.find('\n'); begin != std::string_view::npos && begin < text.size();) {
        const size_t end = std::min(text.find('\n', begin + 1), text.size());
        const std::string_view line = without_spaces(without_comment(text.substr(begin + 1, end - begin - 1)));
        begin = end;
        ++line_number;
        if (line.empty()) continue;
        if (members.size() == kMostMembers) fail(Status::format, where, ": more than ", kMostMembers, " members");
        members.push_back(parse_member(line, concat(where, ": line ", line_number)));
    }
    if (members.size() < 2)
        fail(Status::format, where, ": ", members.size(), " members, expected two or more, each in a line of its own");
    return members;
}

}  // namespace mlff
