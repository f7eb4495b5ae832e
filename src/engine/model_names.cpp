// SPDX-License-Identifier: MIT
#include "engine/model_names.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string_view>

#include "core/error.h"
#include "python_models/model_name.h"

namespace mlff {
namespace {

constexpr const char* kDispersion = "d3:";

// "a1=0.4", and whatever comes behind the number.
bool begins_with_parameter(std::string_view text) {
    const size_t equals = text.find('=');
    if (equals == 0 || equals == std::string_view::npos) return false;
    const auto is_of_key = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
    if (!std::all_of(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(equals), is_of_key)) return false;
    double number = 0;
    const char* const end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data() + equals + 1, end, number);
    return parsed.ec == std::errc() &&
           (parsed.ptr == end || std::string_view(",:+").find(*parsed.ptr) != std::string_view::npos);
}

// Whether the last term of `text` is a dispersion.
bool ends_in_dispersion(std::string_view text) {
    const size_t plus = text.rfind('+');
    return text.substr(plus == std::string_view::npos ? 0 : plus + 1).starts_with(kDispersion);
}

// is_part(what is before the sign, what is behind it): whether the sign separates nothing.
template <class IsPart>
std::vector<std::string> split(const std::string& name, char sign, const IsPart& is_part) {
    std::vector<std::string> found;
    const std::string_view text = name;
    for (size_t begin = 0; begin <= text.size();) {
        size_t end = std::min(text.find(sign, begin), text.size());
        while (end < text.size() && is_part(text.substr(begin, end - begin), text.substr(end + 1)))
            end = std::min(text.find(sign, end + 1), text.size());
        if (end == begin) fail(Status::argument, "model '", name, "': a '", sign, "' has no model beside it");
        found.emplace_back(text.substr(begin, end - begin));
        begin = end + 1;
    }
    return found;
}

}  // namespace

std::vector<std::string> split_members(const std::string& name) {
    return split(name, ',', [](std::string_view before, std::string_view behind) {
        return ends_in_dispersion(before) && begins_with_parameter(behind);
    });
}

std::vector<std::string> split_terms(const std::string& member) {
    return split(member, '+', [](std::string_view, std::string_view) { return false; });
}

std::string with_dispersion(const std::string& name, const std::string& dispersion) {
    const std::string added = kDispersion + dispersion;
    if (dispersion.empty() || dispersion.find('+') != std::string::npos || split_members(added).size() > 1)
        fail(Status::argument, "d3 '", dispersion,
             "': expected one functional, such as pbe:zero, or parameters, such as s8=0.7,a1=0.4,a2=4.4");
    if (python::is_python_name(name))
        fail(Status::argument, "model '", name, "': Python models cannot be in a sum, so that d3 cannot be added");
    std::error_code error;
    if (name.find_first_of(",+") != std::string::npos && std::filesystem::exists(name, error))
        fail(Status::argument, "model '", name,
             "': the name of the file has a '+' or a ',', so that d3 cannot be added; rename the file");
    std::string sum;
    for (const std::string& member : split_members(name)) {
        for (const std::string& term : split_terms(member))
            if (term.starts_with(kDispersion))
                fail(Status::argument, "model '", name, "' has the term ", term,
                     " already: dispersion would be counted twice with ", added);
        sum += (sum.empty() ? "" : ",") + member + "+" + added;
    }
    return sum;
}

}  // namespace mlff
