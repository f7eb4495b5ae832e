// SPDX-License-Identifier: MIT
#include "engine/committee_name.h"

#include <algorithm>
#include <filesystem>
#include <string_view>

namespace mlff {
namespace {

bool is_word(std::string_view text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    });
}

// "key=value"
bool is_option(std::string_view text) {
    const size_t mark = text.find('=');
    return mark != std::string_view::npos && is_word(text.substr(0, mark));
}

// "family:...", perhaps as the last term of a sum
bool takes_options(std::string_view member) {
    const size_t plus = member.rfind('+');
    const std::string_view last = plus == std::string_view::npos ? member : member.substr(plus + 1);
    const size_t colon = last.find(':');
    return colon != std::string_view::npos && is_word(last.substr(0, colon));
}

}  // namespace

std::vector<std::string> committee_members(const std::string& name) {
    std::error_code error;
    if (name.find(',') == std::string::npos || std::filesystem::exists(name, error)) return {};
    std::vector<std::string> members;
    for (size_t begin = 0; begin <= name.size();) {
        const size_t end = std::min(name.find(',', begin), name.size());
        const std::string piece = name.substr(begin, end - begin);
        if (!members.empty() && is_option(piece) && takes_options(members.back()))
            members.back() += "," + piece;
        else
            members.push_back(piece);
        begin = end + 1;
    }
    if (members.size() < 2) members.clear();
    return members;
}

}  // namespace mlff
