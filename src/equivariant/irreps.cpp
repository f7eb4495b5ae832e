// SPDX-License-Identifier: MIT
#include "equivariant/irreps.h"

#include <charconv>

#include "core/error.h"

namespace mlff {
namespace {

// Far above any real model. These limits keep products of sizes inside 32 bits, and make malicious files cheap to
// reject.
constexpr int kMaxMultiplicity = 1 << 16;
constexpr int kMaxDimension = 1 << 20;
constexpr int kMaxBlocks = 512;

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
    return text;
}

// The whole of `text` as a number in 0..largest, or -1.
int small_number(std::string_view text, int largest) {
    int value = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < 0 || value > largest) return -1;
    return value;
}

}  // namespace

Irreps Irreps::parse(std::string_view text) {
    Irreps result;
    std::string_view rest = trimmed(text);
    while (!rest.empty()) {
        const size_t plus = rest.find('+');
        const std::string_view term = trimmed(rest.substr(0, plus));
        rest = plus == std::string_view::npos ? std::string_view() : rest.substr(plus + 1);
        if (plus != std::string_view::npos && rest.empty()) fail(Status::format, "irreps '", text, "' end with '+'");
        const size_t cross = term.find('x');
        const std::string_view irrep = cross == std::string_view::npos ? term : term.substr(cross + 1);
        const int multiplicity =
            cross == std::string_view::npos ? 1 : small_number(term.substr(0, cross), kMaxMultiplicity);
        const char last = irrep.empty() ? '?' : irrep.back();
        const int degree = irrep.empty() ? -1 : small_number(irrep.substr(0, irrep.size() - 1), kMaxDegree);
        if (multiplicity < 0 || degree < 0 || (last != 'e' && last != 'o'))
            fail(Status::format, "'", term, "' in irreps '", text, "' does not have the form 8x1o with a degree up to ",
                 kMaxDegree);
        result.append(multiplicity, {degree, last == 'e' ? 1 : -1});
    }
    return result;
}

void Irreps::append(int multiplicity, Irrep irrep) {
    const bool sane = multiplicity >= 0 && multiplicity <= kMaxMultiplicity && irrep.degree >= 0 &&
                      irrep.degree <= kMaxDegree && (irrep.parity == 1 || irrep.parity == -1);
    if (!sane || block_count() >= kMaxBlocks || multiplicity * irrep.dimension() > kMaxDimension - dimension_)
        fail(Status::format, "irreps with a block ", multiplicity, "x", irrep.degree, " are larger than in any model");
    blocks_.push_back({multiplicity, irrep, dimension_});
    dimension_ += blocks_.back().size();
}

int Irreps::copies_of(Irrep irrep) const {
    int sum = 0;
    for (const IrrepBlock& block : blocks_)
        if (block.irrep == irrep) sum += block.multiplicity;
    return sum;
}

bool Irreps::all_scalar() const {
    for (const IrrepBlock& block : blocks_)
        if (!block.irrep.is_scalar()) return false;
    return true;
}

Irreps Irreps::merged() const {
    Irreps result;
    for (const IrrepBlock& block : blocks_) {
        if (block.multiplicity == 0) continue;
        if (!result.blocks_.empty() && result.blocks_.back().irrep == block.irrep) {
            result.blocks_.back().multiplicity += block.multiplicity;
            result.dimension_ += block.size();
        } else {
            result.append(block.multiplicity, block.irrep);
        }
    }
    return result;
}

bool Irreps::same_layout(const Irreps& other) const {
    const Irreps mine = merged();
    const Irreps theirs = other.merged();
    if (mine.block_count() != theirs.block_count()) return false;
    for (int i = 0; i < mine.block_count(); ++i)
        if (mine[i].multiplicity != theirs[i].multiplicity || !(mine[i].irrep == theirs[i].irrep)) return false;
    return true;
}

std::string Irreps::text() const {
    std::string result;
    for (const IrrepBlock& block : blocks_) {
        if (!result.empty()) result += '+';
        result += concat(block.multiplicity, 'x', block.irrep.degree, block.irrep.parity == 1 ? 'e' : 'o');
    }
    return result;
}

}  // namespace mlff
