// SPDX-License-Identifier: MIT
#include "mace/reference/contraction.h"

#include <vector>

namespace mlff::mace::reference {
namespace {

// Features are [block][u][m]; the contraction works on rows [(block, m)][u].
template <class Visit>
void for_each_entry(const Irreps& irreps, const Visit& visit) {
    size_t first_row = 0;
    for (const IrrepBlock& block : irreps.blocks()) {
        const auto dimension = static_cast<size_t>(block.irrep.dimension());
        const auto copies = static_cast<size_t>(block.multiplicity);
        for (size_t u = 0; u < copies; ++u)
            for (size_t m = 0; m < dimension; ++m)
                visit((first_row + m) * copies + u, static_cast<size_t>(block.offset) + u * dimension + m);
        first_row += dimension;
    }
}

std::vector<double> rows_of(const Irreps& irreps, const double* features) {
    std::vector<double> rows(static_cast<size_t>(irreps.dimension()));
    for_each_entry(irreps, [&](size_t row_index, size_t index) { rows[row_index] = features[index]; });
    return rows;
}

void features_of(const Irreps& irreps, const std::vector<double>& rows, double* features) {
    for_each_entry(irreps, [&](size_t row_index, size_t index) { features[index] = rows[row_index]; });
}

// Calls visit(M, term, weights of the term's path) for all terms.
template <class Visit>
void for_each_term(const SymmetricContraction& contraction, int element, const Visit& visit) {
    const auto channels = static_cast<size_t>(contraction.channel_count);
    const size_t matrix = contraction.element_count == 1 ? 0 : static_cast<size_t>(element);
    const double* weights =
        contraction.weights.data() + matrix * static_cast<size_t>(contraction.path_count) * channels;
    for (size_t row = 0; row < static_cast<size_t>(contraction.out_row_count); ++row) {
        const auto begin = static_cast<size_t>(contraction.first_term[row]);
        const auto end = static_cast<size_t>(contraction.first_term[row + 1]);
        for (size_t t = begin; t < end; ++t) {
            const SymmetricContraction::Term& term = contraction.terms[t];
            visit(row, term, weights + static_cast<size_t>(term.path) * channels);
        }
    }
}

}  // namespace

void compute_contraction(const SymmetricContraction& contraction, int element, const double* basis, double* product) {
    const auto channels = static_cast<size_t>(contraction.channel_count);
    const std::vector<double> a = rows_of(contraction.in, basis);
    std::vector<double> b(static_cast<size_t>(contraction.out.dimension()), 0.0);
    for_each_term(contraction, element, [&](size_t row, const SymmetricContraction::Term& term, const double* weight) {
        for (size_t u = 0; u < channels; ++u) {
            double value = term.coefficient * weight[u];
            for (int i = 0; i < term.order; ++i)
                value *= a[static_cast<size_t>(term.rows[static_cast<size_t>(i)]) * channels + u];
            b[row * channels + u] += value;
        }
    });
    features_of(contraction.out, b, product);
}

// d(A1 A2 A3)/dA2 = A1 A3: omits each factor in turn, which is also right for repeated factors.
void reverse_contraction(const SymmetricContraction& contraction, int element, const double* basis,
                         const double* product_gradient, double* basis_gradient) {
    const auto channels = static_cast<size_t>(contraction.channel_count);
    const std::vector<double> a = rows_of(contraction.in, basis);
    const std::vector<double> b_gradient = rows_of(contraction.out, product_gradient);
    std::vector<double> a_gradient(a.size(), 0.0);
    for_each_term(contraction, element, [&](size_t row, const SymmetricContraction::Term& term, const double* weight) {
        for (size_t u = 0; u < channels; ++u) {
            const double common = term.coefficient * weight[u] * b_gradient[row * channels + u];
            for (int left_out = 0; left_out < term.order; ++left_out) {
                double value = common;
                for (int i = 0; i < term.order; ++i)
                    if (i != left_out)
                        value *= a[static_cast<size_t>(term.rows[static_cast<size_t>(i)]) * channels + u];
                a_gradient[static_cast<size_t>(term.rows[static_cast<size_t>(left_out)]) * channels + u] += value;
            }
        }
    });
    features_of(contraction.in, a_gradient, basis_gradient);
}

}  // namespace mlff::mace::reference
