// SPDX-License-Identifier: MIT
#include "mace/gpu/monomials.h"

#include <algorithm>

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

template std::vector<Monomial> MonomialList::of_element(const Buffer<float>&, int) const;
template std::vector<Monomial> MonomialList::of_element(const Buffer<double>&, int) const;
template Buffer<float> MonomialList::pack(const Buffer<float>&, int) const;
template Buffer<double> MonomialList::pack(const Buffer<double>&, int) const;

}  // namespace mlff::mace::gpu
