// SPDX-License-Identifier: MIT
#include "engine/model_names.h"

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "core/error.h"
#include "python_models/model_name.h"

namespace mlff {
namespace {

constexpr const char* kDispersion = "d3:";

bool is_word(std::string_view text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    });
}

// "key=value", and whatever comes behind it.
bool begins_with_option(std::string_view text) {
    const size_t equals = text.find('=');
    return equals != std::string_view::npos && is_word(text.substr(0, equals));
}

// Whether the last term of `text` is "family:...".
bool ends_in_family(std::string_view text) {
    const size_t plus = text.rfind('+');
    const std::string_view last = text.substr(plus == std::string_view::npos ? 0 : plus + 1);
    const size_t colon = last.find(':');
    return colon != std::string_view::npos && is_word(last.substr(0, colon));
}

// is_part(what is before the sign, what is behind it): whether the sign separates nothing.
template <class IsPart>
std::vector<std::string> split(std::string_view text, char sign, const IsPart& is_part) {
    std::vector<std::string> found;
    for (size_t begin = 0; begin <= text.size();) {
        size_t end = std::min(text.find(sign, begin), text.size());
        while (end < text.size() && is_part(text.substr(begin, end - begin), text.substr(end + 1)))
            end = std::min(text.find(sign, end + 1), text.size());
        found.emplace_back(text.substr(begin, end - begin));
        begin = end + 1;
    }
    return found;
}

bool has_empty(const std::vector<std::string>& names) {
    return std::find(names.begin(), names.end(), "") != names.end();
}

}  // namespace

std::vector<std::string> split_members(const std::string& name) {
    return split(name, ',', [](std::string_view before, std::string_view behind) {
        return ends_in_family(before) && begins_with_option(behind);
    });
}

std::vector<std::string> split_terms(const std::string& member) {
    std::vector<std::string> terms = split(member, '+', [](std::string_view, std::string_view) { return false; });
    if (has_empty(terms)) fail(Status::argument, "model '", member, "': a '+' has no model beside it");
    return terms;
}

std::string with_dispersion(const std::string& name, const std::string& dispersion) {
    const std::string added = kDispersion + dispersion;
    if (dispersion.empty() || dispersion.find('+') != std::string::npos || split_members(added).size() > 1)
        fail(Status::argument, "d3 '", dispersion,
             "': expected one functional, such as pbe:zero, or parameters, such as s8=0.7,a1=0.4,a2=4.4");
    std::error_code error;
    if (name.find_first_of(",+") != std::string::npos && std::filesystem::exists(name, error))
        fail(Status::argument, "model '", name,
             "': the path has a '+' or a ',', so that d3 cannot be added; name the file from within its folder, "
             "rename it, or list it in a file of members");
    const std::vector<std::string> members = split_members(name);
    if (has_empty(members)) fail(Status::argument, "model '", name, "': a ',' has no model beside it");
    std::string sum;
    for (const std::string& member : members) {
        for (const std::string& term : split_terms(member)) {
            if (python::is_python_name(term))
                fail(Status::argument, "model '", name,
                     "': Python models cannot be in a sum, so that d3 cannot be added");
            if (term.starts_with(kDispersion))
                fail(Status::argument, "model '", name, "' has the term ", term,
                     " already: dispersion would be counted twice with ", added);
        }
        sum += (sum.empty() ? "" : ",") + member + "+" + added;
    }
    return sum;
}

}  // namespace mlff
