// SPDX-License-Identifier: MIT
#include "mace/plan/contraction.h"

#include <algorithm>

namespace mlff::mace::plan {
namespace {

// A tree of monomials. A node is the product of the rows on the way to it.
struct Branch {
    std::map<int, Branch> children;
    std::vector<std::pair<int, double>> terms;  // path, coefficient
};

static_assert(kPolynomialLevels >= kMaxCorrelation);

}  // namespace

template <class Real>
Contraction<Real>::Contraction(const SymmetricContraction& contraction)
    : contraction_(contraction), stride_(padded(contraction.channel_count)) {
    list_steps();
}

// The rows of a term ascend, so terms that begin with the same rows share a branch, and thus products.
template <class Real>
void Contraction<Real>::list_steps() {
    const auto new_coefficient = [&](const Branch& branch) {
        for (const auto& [path, value] : branch.terms) sources_.push_back({polynomial_coefficients_, path, value});
        ++polynomial_coefficients_;
    };
    const auto list_node = [&](const auto& list_below, int row, int level, const Branch& branch) -> void {
        PolynomialStep& step = steps_.emplace_back();
        step.row = row;
        step.level = level;
        new_coefficient(branch);
        for (const auto& [leaf_row, child] : branch.children)
            if (child.children.empty()) {
                leaf_rows_.push_back(leaf_row);
                ++step.leaf_count;
                new_coefficient(child);
            }
        for (const auto& [child_row, child] : branch.children)
            if (!child.children.empty()) list_below(list_below, child_row, level + 1, child);
        ++steps_.back().close_count;
    };
    for (int out = 0; out < contraction_.out_row_count; ++out) {
        Branch root;
        for (int t = contraction_.first_term[static_cast<size_t>(out)];
             t < contraction_.first_term[static_cast<size_t>(out) + 1]; ++t) {
            const auto& term = contraction_.terms[static_cast<size_t>(t)];
            Branch* branch = &root;
            for (int k = 0; k < term.order; ++k) branch = &branch->children[term.rows[static_cast<size_t>(k)]];
            branch->terms.emplace_back(term.path, term.coefficient);
        }
        list_node(list_node, 0, 0, root);
    }
}

template <class Real>
void Contraction<Real>::prepare(int element) {
    const int key = contraction_.element_count > 1 ? element : 0;
    if (coefficients_.contains(key)) return;
    const auto count = static_cast<size_t>(polynomial_coefficients_),
               channels = static_cast<size_t>(contraction_.channel_count);
    std::vector<double> sums(count * static_cast<size_t>(stride_), 0.0);
    const double* weights = contraction_.weights.data() +
                            static_cast<size_t>(key) * static_cast<size_t>(contraction_.path_count) * channels;
    for (const Source& source : sources_)
        for (size_t k = 0; k < channels; ++k)
            sums[static_cast<size_t>(source.coefficient) * static_cast<size_t>(stride_) + k] +=
                source.value * weights[static_cast<size_t>(source.path) * channels + k];
    Buffer<Real> packed;
    packed.resize_discard(sums.size());
    for (size_t i = 0; i < count; ++i)
        for (size_t k = 0; k < static_cast<size_t>(stride_); ++k)
            packed[((k / kRowPadding) * count + i) * kRowPadding + k % kRowPadding] =
                static_cast<Real>(sums[i * static_cast<size_t>(stride_) + k]);
    // Stored only when complete, so that prepare() can be called again after it has run out of memory.
    coefficients_.emplace(key, std::move(packed));
}

template <class Real>
const Buffer<Real>& Contraction<Real>::coefficients(int element) const {
    return coefficients_.at(contraction_.element_count > 1 ? element : 0);
}

template <class Real>
Polynomial Contraction<Real>::polynomial() const {
    return {steps_.data(),
            leaf_rows_.data(),
            static_cast<int>(steps_.size()),
            contraction_.in_row_count,
            contraction_.out_row_count,
            polynomial_coefficients_};
}

// Sixteen channels of all atoms are done before the next sixteen, so that their coefficients stay in the cache.
template <class Real>
PolynomialRows<Real> Contraction<Real>::rows_of(int element, int channel, const Real* in, int atom_count,
                                                Buffer<Real>& work) const {
    work.resize_discard(polynomial_work_size(contraction_.in_row_count));
    return {coefficients(element).data() + static_cast<ptrdiff_t>(channel) * polynomial_coefficients_,
            in + channel,
            atom_count,
            stride_,
            in_size(),
            out_size(),
            work.data()};
}

template <class Real>
void Contraction<Real>::apply(const KernelTable<Real>& kernels, int element, const Real* in, Real* out, int atom_count,
                              Buffer<Real>& work) const {
    for (int channel = 0; channel < stride_; channel += kRowPadding)
        kernels.evaluate_polynomial(polynomial(), rows_of(element, channel, in, atom_count, work), out + channel);
}

template <class Real>
void Contraction<Real>::reverse(const KernelTable<Real>& kernels, int element, const Real* in, const Real* out_gradient,
                                Real* in_gradient, int atom_count, Buffer<Real>& work) const {
    std::fill_n(in_gradient, static_cast<ptrdiff_t>(atom_count) * in_size(), Real(0));
    for (int channel = 0; channel < stride_; channel += kRowPadding)
        kernels.reverse_polynomial(polynomial(), rows_of(element, channel, in, atom_count, work),
                                   out_gradient + channel, in_gradient + channel);
}

template class Contraction<float>;
template class Contraction<double>;

}  // namespace mlff::mace::plan
