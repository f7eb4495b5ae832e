// SPDX-License-Identifier: MIT
#include "mace/gpu/monomials.h"
#include "mace/plan/names.h"

#include <algorithm>
#include <array>
#include <map>

#include "mace/gpu/contraction_pattern.h"

namespace mlff::mace::gpu {
namespace {

constexpr int kReadAhead = 2 * kMonomialsAtOnce;

template <class Real>
Real coefficient_of(const Buffer<Real>& coefficients, int count, int monomial, int channel) {
    const auto strip = static_cast<size_t>(channel / plan::kRowPadding * count + monomial);
    return coefficients[strip * plan::kRowPadding + static_cast<size_t>(channel % plan::kRowPadding)];
}

}  // namespace

// The coefficients of the steps are in preorder: a node, its leaves, then its other children.
MonomialList::MonomialList(const plan::Polynomial& polynomial) : count(polynomial.coefficient_count) {
    const int32_t* leaf = polynomial.leaf_rows;
    for (const plan::PolynomialStep* step = polynomial.steps; step < polynomial.steps + polynomial.step_count; ++step) {
        monomials.emplace_back(step->row, step->level, false);
        for (int i = 0; i < step->leaf_count; ++i) monomials.emplace_back(*leaf++, step->level + 1, false);
    }
    for (const Monomial& monomial : monomials) depth = std::max<int>(depth, monomial.level());

    const size_t groups = (monomials.size() + kMonomialsAtOnce - 1) / kMonomialsAtOnce;
    const Monomial idle(0, kMaxCorrelation, false);  // begins no branch and, having no coefficient, adds nothing
    monomials.resize(groups * kMonomialsAtOnce + kReadAhead, idle);

    MonomialPath path;
    for (size_t i = 0; i <= groups * kMonomialsAtOnce; ++i) {
        if (i % kMonomialsAtOnce == 0) paths.push_back(path);
        const Monomial& monomial = monomials[i];
        if (monomial.level() == 0)
            ++path.out_row;
        else if (monomial.level() < kMaxCorrelation)
            path.rows[monomial.level() - 1] = static_cast<uint16_t>(monomial.row());
    }
}

template <class Real>
std::vector<Monomial> MonomialList::of_element(const Buffer<Real>& coefficients, int stride) const {
    std::vector<Monomial> result = monomials;
    for (int i = 0; i < count; ++i) {
        bool has_coefficient = false;
        for (int channel = 0; channel < stride; ++channel)
            has_coefficient |= coefficient_of(coefficients, count, i, channel) != 0;
        Monomial& monomial = result[static_cast<size_t>(i)];
        monomial = Monomial(monomial.row(), monomial.level(), has_coefficient);
    }
    return result;
}

template <class Real>
Buffer<Real> MonomialList::pack(const Buffer<Real>& coefficients, int stride) const {
    Buffer<Real> packed;
    const int strips = (stride + kLanes - 1) / kLanes;
    packed.resize_discard(static_cast<size_t>(strips) * static_cast<size_t>(count) * kLanes);
    size_t at = 0;
    for (int strip = 0; strip < strips; ++strip)
        for (int i = 0; i < count; ++i)
            for (int channel = strip * kLanes; channel < (strip + 1) * kLanes; ++channel)
                packed[at++] = channel < stride ? coefficient_of(coefficients, count, i, channel) : Real(0);
    return packed;
}

std::vector<int32_t> MonomialList::in_pattern(const plan::Polynomial& polynomial) const {
    int out_degree = 0;
    while (out_degree < kMostPatternOutDegree && (out_degree + 1) * (out_degree + 1) < polynomial.out_row_count)
        ++out_degree;
    if (polynomial.in_row_count != kPatternRows || polynomial.out_row_count != (out_degree + 1) * (out_degree + 1) ||
        depth > kPatternLevels)
        return {};
    using Key = std::array<int, 1 + kPatternLevels>;  // the row of the result, then factors; -1 beyond the last
    std::map<Key, int32_t> index;
    Key key = {-1, -1, -1, -1};
    for (int i = 0; i < count; ++i) {
        const Monomial& monomial = monomials[static_cast<size_t>(i)];
        const auto level = static_cast<size_t>(monomial.level());
        if (level == 0)
            ++key[0];
        else
            key[level] = monomial.row();
        std::fill(key.begin() + 1 + static_cast<ptrdiff_t>(level), key.end(), -1);
        if (level > 0) index[key] = i;
    }
    const size_t found_count = index.size();
    std::vector<int32_t> pattern;
    for (int out = 0; out < polynomial.out_row_count; ++out) {
        const RowPattern row = list_row_pattern(out);
        for (int i = 0; i < row.count; ++i) {
            key = {out, -1, -1, -1};
            std::copy_n(row.of[i].rows, row.of[i].level, key.begin() + 1);
            const auto found = index.find(key);
            pattern.push_back(found == index.end() ? -1 : found->second);
            if (found != index.end()) index.erase(found);
        }
        while (pattern.size() % 4 != 0) pattern.push_back(-1);
    }
    const bool has_most = 2 * found_count >= pattern.size();  // else a list of those that are there is shorter
    return index.empty() && has_most ? pattern : std::vector<int32_t>();
}

template <class Real>
Buffer<Real> MonomialList::pack(const Buffer<Real>& coefficients, int stride,
                                const std::vector<int32_t>& pattern) const {
    Buffer<Real> packed;
    const int strips = (stride + kLanes - 1) / kLanes;
    packed.resize_discard(static_cast<size_t>(strips) * pattern.size() * kLanes);
    size_t at = 0;
    for (int strip = 0; strip < strips; ++strip)
        for (size_t group = 0; group < pattern.size(); group += 4)
            for (int channel = strip * kLanes; channel < (strip + 1) * kLanes; ++channel)
                for (size_t i = group; i < group + 4; ++i)
                    packed[at++] = pattern[i] >= 0 && channel < stride
                                       ? coefficient_of(coefficients, count, pattern[i], channel)
                                       : Real(0);
    return packed;
}

template std::vector<Monomial> MonomialList::of_element(const Buffer<float>&, int) const;
template std::vector<Monomial> MonomialList::of_element(const Buffer<double>&, int) const;
template Buffer<float> MonomialList::pack(const Buffer<float>&, int) const;
template Buffer<double> MonomialList::pack(const Buffer<double>&, int) const;
template Buffer<float> MonomialList::pack(const Buffer<float>&, int, const std::vector<int32_t>&) const;
template Buffer<double> MonomialList::pack(const Buffer<double>&, int, const std::vector<int32_t>&) const;

}  // namespace mlff::mace::gpu
