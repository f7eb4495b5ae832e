// SPDX-License-Identifier: MIT
// Lists of the members of a committee, as text files:
//
//     mlff committee
//     # A comment. A member is a path, relative to this file, or the name of a model.
//     first.model
//     second.model+zbl  weight=0.5
//
// The text is not trusted.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mlff {

struct ListedMember {
    std::string name;
    double weight = 1;  // finite and positive
    bool operator==(const ListedMember&) const = default;
};

inline constexpr size_t kMostMembers = 64;

// Whether a file with these bytes, or more, is a list of members: its first line is "mlff committee".
bool is_member_list(std::string_view text);
// Two to kMostMembers members. Throws Error{format} that names `where` and the line.
std::vector<ListedMember> parse_member_list(std::string_view text, const std::string& where);

}  // namespace mlff
