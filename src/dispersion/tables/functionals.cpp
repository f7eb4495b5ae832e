// SPDX-License-Identifier: MIT
#include "dispersion/tables/functionals.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <optional>

#include "core/error.h"

namespace mlff::dispersion {
namespace {

struct Functional {
    std::string_view name;
    Damping damping;
};

constexpr Damping bj(double s6, double s8, double a1, double a2) {
    return {.kind = DampingKind::bj, .s6 = s6, .s8 = s8, .a1 = a1, .a2 = a2};
}
constexpr Damping zero(double s6, double s8, double rs6, double rs8) {
    return {.kind = DampingKind::zero, .s6 = s6, .s8 = s8, .rs6 = rs6, .rs8 = rs8};
}

constexpr Functional kFunctionals[] = {
#include "dispersion/tables/functionals.inc"
};

constexpr struct {
    std::string_view name, meaning;
} kOtherNames[] = {{"bp86", "bp"},       {"b3p86", "b3p"},   {"b1p86", "b1p"},       {"b88b95", "b1b95"},
                   {"b971", "b97-1"},    {"b972", "b97-2"},  {"bhandhlyp", "bhlyp"}, {"mpw1pw91", "mpw1pw"},
                   {"mpwpw91", "mpwpw"}, {"pbeh", "pbe0"},   {"pw91p86", "pwp"},     {"lcwhpbe", "lc-whpbe"},
                   {"pbe1pbe", "pbe0"},  {"b3lyp5", "b3lyp"}};

std::string plain_name(std::string_view name) {
    std::string plain;
    for (const char c : name)
        if (c != '-' && c != '_' && c != '/') plain += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    return plain;
}

// The number of letters to insert, remove or replace.
size_t difference(std::string_view a, std::string_view b) {
    std::vector<size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), size_t{0});
    for (size_t i = 0; i < a.size(); ++i) {
        size_t diagonal = row[0]++;
        for (size_t j = 0; j < b.size(); ++j) {
            const size_t above = row[j + 1];
            row[j + 1] = std::min({above + 1, row[j] + 1, diagonal + (a[i] == b[j] ? 0 : 1)});
            diagonal = above;
        }
    }
    return row.back();
}

std::string closest_names(const std::string& wanted, DampingKind kind) {
    constexpr size_t kShown = 6;
    std::vector<std::string> names = functional_names(kind);
    std::stable_sort(names.begin(), names.end(), [&](const std::string& a, const std::string& b) {
        return difference(plain_name(a), wanted) < difference(plain_name(b), wanted);
    });
    std::string text;
    for (size_t i = 0; i < std::min(kShown, names.size()); ++i) text += (i == 0 ? "" : ", ") + names[i];
    return text;
}

const Functional* find_functional(const std::string& plain, DampingKind kind) {
    for (const Functional& functional : kFunctionals)
        if (functional.damping.kind == kind && plain_name(functional.name) == plain) return &functional;
    return nullptr;
}

double number_of(std::string_view text, std::string_view name) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
        fail(Status::argument, "the D3 parameter ", name, " must be a number, not '", text, "'");
    return value;
}

std::string shortest_text(double value) {
    char text[32];
    return {text, std::to_chars(text, text + sizeof(text), value, std::chars_format::general).ptr};
}

}  // namespace

std::string_view kind_name(DampingKind kind) { return kind == DampingKind::bj ? "bj" : "zero"; }

std::vector<std::string> functional_names(DampingKind kind) {
    std::vector<std::string> names;
    for (const Functional& functional : kFunctionals)
        if (functional.damping.kind == kind) names.emplace_back(functional.name);
    std::sort(names.begin(), names.end());
    return names;
}

Damping damping_of_functional(std::string_view name, DampingKind kind) {
    std::string plain = plain_name(name);
    for (const auto& other : kOtherNames)
        if (other.name == plain) plain = plain_name(other.meaning);
    if (const Functional* functional = find_functional(plain, kind)) return functional->damping;
    const DampingKind other = kind == DampingKind::bj ? DampingKind::zero : DampingKind::bj;
    if (find_functional(plain, other))
        fail(Status::argument, "the functional '", name, "' has no D3 parameters for the damping ", kind_name(kind),
             ", only for ", kind_name(other));
    fail(Status::argument, "no D3 parameters are known for the functional '", name,
         "'; names that come close: ", closest_names(plain, kind), " (docs/dispersion.md has all of them)");
}

Damping damping_of_values(std::string_view text, DampingKind kind) {
    const bool is_bj = kind == DampingKind::bj;
    std::optional<double> s6 = 1, s8, a1, a2, rs6, rs8 = 1, alpha = 14;
    const struct {
        std::string_view name;
        std::optional<double>* value;
        bool is_used, has_default;
    } parameters[] = {{"s6", &s6, true, true},        {"s8", &s8, true, false},     {"a1", &a1, is_bj, false},
                      {"a2", &a2, is_bj, false},      {"rs6", &rs6, !is_bj, false}, {"rs8", &rs8, !is_bj, true},
                      {"alpha", &alpha, !is_bj, true}};
    std::vector<std::string_view> given;
    while (!text.empty()) {
        const std::string_view item = text.substr(0, text.find(','));
        text.remove_prefix(std::min(text.size(), item.size() + 1));
        const size_t equals = item.find('=');
        const std::string_view name = item.substr(0, equals);
        const auto* parameter = std::find_if(std::begin(parameters), std::end(parameters),
                                             [&](const auto& one) { return one.name == name && one.is_used; });
        if (equals == std::string_view::npos || parameter == std::end(parameters))
            fail(Status::argument, "'", item, "' is no D3 parameter of the damping ", kind_name(kind), "; expected ",
                 is_bj ? "s6, s8, a1 and a2" : "s6, s8, rs6, rs8 and alpha", " as name=number");
        if (std::find(given.begin(), given.end(), name) != given.end())
            fail(Status::argument, "the D3 parameter ", name, " is given twice");
        given.push_back(name);
        *parameter->value = number_of(item.substr(equals + 1), name);
        constexpr double kLargest = 1000;
        if (std::abs(**parameter->value) > kLargest)
            fail(Status::argument, "the D3 parameter ", name, " is ", **parameter->value, ", more than ", kLargest);
    }
    for (const auto& one : parameters)
        if (one.is_used && !one.value->has_value())
            fail(Status::argument, "the D3 parameter ", one.name, " is missing; the damping ", kind_name(kind),
                 " needs ", is_bj ? "s8, a1 and a2" : "s8 and rs6");
    if (*alpha != std::round(*alpha) || *alpha < 6 || *alpha > 40 || std::fmod(*alpha, 2) != 0)
        fail(Status::argument, "the D3 parameter alpha must be an even whole number from 6 to 40, not ", *alpha);
    if (is_bj) {
        if (*a1 == 0 && *a2 == 0) fail(Status::argument, "a1 and a2 are both 0: the D3 energy would not be damped");
        return bj(*s6, *s8, *a1, *a2);
    }
    if (!(*rs6 > 0 && *rs8 > 0)) fail(Status::argument, "the D3 parameters rs6 and rs8 must be positive");
    Damping damping = zero(*s6, *s8, *rs6, *rs8);
    damping.alpha = static_cast<int>(*alpha);
    return damping;
}

std::string values_text(const Damping& damping) {
    std::string text = concat("s6=", shortest_text(damping.s6), ",s8=", shortest_text(damping.s8));
    if (damping.kind == DampingKind::bj)
        return concat(text, ",a1=", shortest_text(damping.a1), ",a2=", shortest_text(damping.a2));
    return concat(text, ",rs6=", shortest_text(damping.rs6), ",rs8=", shortest_text(damping.rs8),
                  ",alpha=", damping.alpha);
}

}  // namespace mlff::dispersion
