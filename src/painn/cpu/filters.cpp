// SPDX-License-Identifier: MIT
#include "painn/cpu/filters.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "painn/functions/radial.h"

namespace mlff::painn::cpu {
namespace {

constexpr int kRowsAtATime = 32;
constexpr int kSlopeShare = 1;  // the term whose row is the slope at a node (spline_formulas.inc)

}  // namespace

double function_scale(const Weights& weights, int n) {
    const Linear& filter = weights.blocks[0].filter;
    double largest = 0;
    for (size_t k = 0; k < filter.bias.size(); ++k)
        largest = std::max(
            largest,
            std::abs(n == 0 ? filter.bias[k]
                            : filter.weight[k * static_cast<size_t>(filter.in_width) + static_cast<size_t>(n - 1)]));
    return largest > 0 ? largest : 1;
}

FilterFunctions::FilterFunctions(const Weights& weights)
    : radial_count_(weights.radial_count), cutoff_(weights.cutoff) {
    const auto count = static_cast<size_t>(radial_count_), depth = count + 1,
               hidden = static_cast<size_t>(weights.hidden);
    constexpr size_t kChannels = kernels::kRowPadding;
    column_count_ = basis_stride() + static_cast<int>(weights.blocks.size() - 1) * 3 * weights.hidden;
    weight_.resize_discard(depth * static_cast<size_t>(column_count_));
    size_t column = 0;
    for (; column < static_cast<size_t>(basis_stride()); ++column)
        for (size_t n = 0; n < depth; ++n)
            weight_[kernels::matrix_index(n, column, depth)] =
                n == column ? function_scale(weights, static_cast<int>(n)) : 0;
    for (size_t b = 1; b < weights.blocks.size(); ++b) {
        const Linear& filter = weights.blocks[b].filter;
        for (size_t strip = 0; strip < hidden / kChannels; ++strip)
            for (size_t part = 0; part < 3; ++part)
                for (size_t channel = 0; channel < kChannels; ++channel, ++column) {
                    const size_t k = part * hidden + strip * kChannels + channel;
                    weight_[kernels::matrix_index(0, column, depth)] = filter.bias[k];
                    for (size_t n = 0; n < count; ++n)
                        weight_[kernels::matrix_index(n + 1, column, depth)] = filter.weight[k * count + n];
                }
    }
}

void FilterFunctions::compute_basis(double distance, double* values, double* slopes) const {
    radial_functions(radial_count_, cutoff_, distance, values, slopes);
}

void FilterFunctions::compute(const double* basis, int count, int first_column, int column_count, double* rows) const {
    const auto& kernels = kernels::choose_kernels<double>();
    const double* matrix = weight_.data() + first_column * (radial_count_ + 1);
    for (int first = 0; first < count; first += kRowsAtATime) {
        const int some = std::min(count - first, kRowsAtATime);
        const double* from[kRowsAtATime];
        double* to[kRowsAtATime];
        for (int i = 0; i < some; ++i) {
            from[i] = basis + (first + i) * static_cast<int64_t>(basis_stride());
            to[i] = rows + (first + i) * static_cast<int64_t>(column_count);
        }
        kernels.multiply_rows(from, to, some, matrix, radial_count_ + 1, column_count, false);
    }
}

template <class Real>
Filters<Real>::Filters(const Weights& weights, bool is_exact)
    : functions_(weights), strip_count_(weights.hidden / kernels::kRowPadding), is_exact_(is_exact) {
    if (is_exact) return;
    const kernels::SampleRows sample = [&](std::span<const double> distances, double* rows) {
        Buffer<double> basis, values;  // aligned; `rows` need not be
        const auto stride = static_cast<size_t>(functions_.basis_stride());
        basis.resize_discard(distances.size() * stride);
        values.resize_discard(distances.size() * static_cast<size_t>(functions_.column_count()));
        for (size_t i = 0; i < distances.size(); ++i)
            functions_.compute_basis(distances[i], basis.data() + i * stride, nullptr);
        functions_.compute(basis.data(), static_cast<int>(distances.size()), 0, functions_.column_count(),
                           values.data());
        std::copy(values.begin(), values.end(), rows);
    };
    ThreadTeam team(1);
    std::vector<int> widths = {basis_stride()};
    while (std::accumulate(widths.begin(), widths.end(), 0) < functions_.column_count())
        widths.push_back(kStripColumns);
    table_ = std::make_unique<kernels::SplineTable<Real>>(sample, widths, 0.0, weights.cutoff, team);
}

template <class Real>
void Filters<Real>::start(int64_t edge_count) {
    shares_.resize_discard(static_cast<size_t>(edge_count));
    if (!is_exact_) return;
    for (Buffer<double>* buffer : {&basis_, &basis_slopes_})
        buffer->resize_discard(static_cast<size_t>(edge_count * functions_.basis_stride()));
}

template <class Real>
void Filters<Real>::locate(const double* distances, int64_t begin, int64_t end) {
    for (int64_t edge = begin; edge < end; ++edge) {
        kernels::SplineShares<Real>& shares = shares_[static_cast<size_t>(edge)];
        if (!is_exact_) {
            shares = table_->view().locate(distances[edge]);
            continue;
        }
        // The table has one node for each edge, with value and slope.
        shares = {};
        shares.interval = edge;
        shares.slope[kSlopeShare] = 1;
        const int64_t at = edge * functions_.basis_stride();
        functions_.compute_basis(distances[edge], basis_.data() + at, basis_slopes_.data() + at);
    }
}

template <class Real>
const Real* Filters<Real>::functions(int64_t begin, int64_t end, Scratch& scratch) const {
    return table(0, begin, end, basis_stride(), scratch);
}

template <class Real>
const Real* Filters<Real>::strip(size_t block, int strip, int64_t begin, int64_t end, Scratch& scratch) const {
    return table(static_cast<size_t>(basis_stride()) + strip_index(block, strip) * kStripColumns, begin, end,
                 kStripColumns, scratch);
}

template <class Real>
const Real* Filters<Real>::table(size_t first_column, int64_t begin, int64_t end, int column_count,
                                 Scratch& scratch) const {
    if (!is_exact_) return table_->view().coefficients + first_column * static_cast<size_t>(table_->view().row_count);
    const auto count = static_cast<size_t>(end - begin), columns = static_cast<size_t>(column_count);
    for (Buffer<double>* buffer : {&scratch.values, &scratch.slopes}) buffer->resize_discard(count * columns);
    const int64_t at = begin * functions_.basis_stride();
    functions_.compute(basis_.data() + at, static_cast<int>(count), static_cast<int>(first_column), column_count,
                       scratch.values.data());
    functions_.compute(basis_slopes_.data() + at, static_cast<int>(count), static_cast<int>(first_column), column_count,
                       scratch.slopes.data());
    const size_t node = kernels::kSplineRows * columns;
    scratch.rows.resize_discard((count + 1) * node);
    std::fill(scratch.rows.begin(), scratch.rows.end(), Real(0));  // kernels read the other rows, times zero
    for (size_t i = 0; i < count; ++i) {
        Real *values = scratch.rows.data() + i * node, *slopes = values + kernels::spline_row(kSlopeShare) * columns;
        for (size_t k = 0; k < columns; ++k) {
            values[k] = static_cast<Real>(scratch.values[i * columns + k]);
            slopes[k] = static_cast<Real>(scratch.slopes[i * columns + k]);
        }
    }
    return scratch.rows.data();
}

template class Filters<float>;
template class Filters<double>;

}  // namespace mlff::painn::cpu
