// SPDX-License-Identifier: MIT
#include "mace/cpu/contraction.h"

#include <algorithm>
#include <array>
#include <functional>

namespace mlff::mace::cpu {
namespace {

// A tree of monomials, by the rows on the way; its nodes become PolynomialNodes in an order that keeps siblings together.
struct Branch {
    std::map<int, Branch> children;
    std::vector<std::pair<int, double>> terms;  // path, coefficient
};

}  // namespace

template <class Real>
Contraction<Real>::Contraction(const SymmetricContraction& contraction) : contraction_(contraction), stride_(padded(contraction.channel_count)) {
    build_tree();
}

// Highest order first on the way down: rows are ascending in a term, and sharing beginnings shares products.
template <class Real>
void Contraction<Real>::build_tree() {
    const auto new_coefficient = [&](const Branch& branch) {
        for (const auto& [path, value] : branch.terms) sources_.push_back({polynomial_coefficients_, path, value});
        return polynomial_coefficients_++;
    };
    std::function<void(size_t, const Branch&)> fill = [&](size_t at, const Branch& branch) {
        nodes_[at].coefficient = new_coefficient(branch);
        nodes_[at].leaf_begin = static_cast<int32_t>(leaf_rows_.size());
        nodes_[at].leaf_coefficient = polynomial_coefficients_;
        for (const auto& [row, child] : branch.children)
            if (child.children.empty()) {
                leaf_rows_.push_back(row);
                new_coefficient(child);
            }
        nodes_[at].leaf_end = static_cast<int32_t>(leaf_rows_.size());
        const size_t begin = nodes_.size();
        for (const auto& [row, child] : branch.children)
            if (!child.children.empty()) nodes_.emplace_back().row = row;
        nodes_[at].child_begin = static_cast<int32_t>(begin);
        nodes_[at].child_end = static_cast<int32_t>(nodes_.size());
        size_t next = begin;
        for (const auto& [row, child] : branch.children)
            if (!child.children.empty()) fill(next++, child);
    };
    for (int out = 0; out < contraction_.out_row_count; ++out) {
        Branch root;
        for (int t = contraction_.first_term[static_cast<size_t>(out)]; t < contraction_.first_term[static_cast<size_t>(out) + 1]; ++t) {
            const auto& term = contraction_.terms[static_cast<size_t>(t)];
            Branch* branch = &root;
            for (int k = 0; k < term.order; ++k) branch = &branch->children[term.rows[static_cast<size_t>(k)]];
            branch->terms.emplace_back(term.path, term.coefficient);
        }
        roots_.push_back(static_cast<int32_t>(nodes_.size()));
        nodes_.emplace_back();
        fill(nodes_.size() - 1, root);
    }
}

template <class Real>
void Contraction<Real>::prepare(int element) {
    const int key = contraction_.element_count > 1 ? element : 0;
    if (coefficients_.contains(key)) return;
    const auto count = static_cast<size_t>(polynomial_coefficients_), channels = static_cast<size_t>(contraction_.channel_count);
    std::vector<double> sums(count * static_cast<size_t>(stride_), 0.0);
    const double* weights = contraction_.weights.data() + static_cast<size_t>(key) * static_cast<size_t>(contraction_.path_count) * channels;
    for (const Source& source : sources_)
        for (size_t k = 0; k < channels; ++k)
            sums[static_cast<size_t>(source.coefficient) * static_cast<size_t>(stride_) + k] += source.value * weights[static_cast<size_t>(source.path) * channels + k];
    Buffer<Real> packed;
    packed.resize_discard(sums.size());
    for (size_t i = 0; i < count; ++i)
        for (size_t k = 0; k < static_cast<size_t>(stride_); ++k)
            packed[((k / kRowPadding) * count + i) * kRowPadding + k % kRowPadding] = static_cast<Real>(sums[i * static_cast<size_t>(stride_) + k]);
    coefficients_.emplace(key, std::move(packed));  // only when they are complete: a prepare() that ran out of memory is tried again
}

template <class Real>
const Buffer<Real>& Contraction<Real>::coefficients(int element) const {
    return coefficients_.at(contraction_.element_count > 1 ? element : 0);
}

template <class Real>
Polynomial Contraction<Real>::polynomial() const {
    return {nodes_.data(), leaf_rows_.data(), roots_.data(), contraction_.in_row_count, contraction_.out_row_count, polynomial_coefficients_};
}

// Sixteen channels of all atoms before the next sixteen: their coefficients stay in the cache.
template <class Real>
void Contraction<Real>::apply(const KernelTable<Real>& kernels, int element, const Real* in, Real* out, int atom_count) const {
    const Real* all = coefficients(element).data();
    for (int k = 0; k < stride_; k += kRowPadding)
        for (int atom = 0; atom < atom_count; ++atom)
            kernels.evaluate_polynomial(polynomial(), all + static_cast<ptrdiff_t>(k) * polynomial_coefficients_, in + static_cast<ptrdiff_t>(atom) * in_size() + k, stride_,
                                        out + static_cast<ptrdiff_t>(atom) * out_size() + k);
}

template <class Real>
void Contraction<Real>::reverse(const KernelTable<Real>& kernels, int element, const Real* in, const Real* out_gradient, Real* in_gradient, int atom_count) const {
    std::fill_n(in_gradient, static_cast<ptrdiff_t>(atom_count) * in_size(), Real(0));
    const Real* all = coefficients(element).data();
    for (int k = 0; k < stride_; k += kRowPadding)
        for (int atom = 0; atom < atom_count; ++atom)
            kernels.reverse_polynomial(polynomial(), all + static_cast<ptrdiff_t>(k) * polynomial_coefficients_, in + static_cast<ptrdiff_t>(atom) * in_size() + k, stride_,
                                       out_gradient + static_cast<ptrdiff_t>(atom) * out_size() + k, in_gradient + static_cast<ptrdiff_t>(atom) * in_size() + k);
}

template class Contraction<float>;
template class Contraction<double>;

}  // namespace mlff::mace::cpu
