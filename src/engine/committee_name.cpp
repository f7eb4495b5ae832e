// SPDX-License-Identifier: MIT
#include "engine/committee_name.h"

#include <filesystem>

#include "engine/model_names.h"

namespace mlff {

std::vector<std::string> committee_members(const std::string& name) {
    std::error_code error;
    if (name.find(',') == std::string::npos || std::filesystem::exists(name, error)) return {};
    std::vector<std::string> members = split_members(name);
    if (members.size() < 2) members.clear();
    return members;
}

}  // namespace mlff
