// SPDX-License-Identifier: MIT
#include "painn/cpu/filters.h"

#include <algorithm>

#include "painn/radial.h"

namespace mlff::painn::cpu {
namespace {

constexpr int kRowsAtATime = 32;
constexpr size_t kTableRow = 2 * kStripColumns;
constexpr size_t kCenter = 2;  // the row of a spline's center, from its interval on (see SplineShares)

}  // namespace

FilterFunctions::FilterFunctions(const Weights& weights)
    : radial_count_(weights.radial_count), column_count_(static_cast<int>(weights.blocks.size()) * 3 * weights.hidden), cutoff_(weights.cutoff) {
    const auto count = static_cast<size_t>(radial_count_), depth = count + 1, hidden = static_cast<size_t>(weights.hidden);
    constexpr size_t kChannels = kernels::kRowPadding;
    weight_.resize_discard(depth * static_cast<size_t>(column_count_));
    size_t column = 0;
    for (const Block& block : weights.blocks)
        for (size_t strip = 0; strip < hidden / kChannels; ++strip)
            for (size_t part = 0; part < 3; ++part)
                for (size_t channel = 0; channel < kChannels; ++channel, ++column) {
                    const size_t k = part * hidden + strip * kChannels + channel;
                    weight_[kernels::matrix_index(0, column, depth)] = block.filter.bias[k];
                    for (size_t n = 0; n < count; ++n) weight_[kernels::matrix_index(n + 1, column, depth)] = block.filter.weight[k * count + n];
                }
}

void FilterFunctions::compute_basis(double distance, double* values, double* slopes) const { radial_functions(radial_count_, cutoff_, distance, values, slopes); }

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
Filters<Real>::Filters(const Weights& weights, bool is_exact) : functions_(weights), strip_count_(weights.hidden / kernels::kRowPadding), is_exact_(is_exact) {
    if (is_exact) return;
    const kernels::SampleRows sample = [&](std::span<const double> distances, double* rows) {
        Buffer<double> basis, values;  // aligned, which `rows` need not be
        const auto stride = static_cast<size_t>(functions_.basis_stride());
        basis.resize_discard(distances.size() * stride);
        values.resize_discard(distances.size() * static_cast<size_t>(functions_.column_count()));
        for (size_t i = 0; i < distances.size(); ++i) functions_.compute_basis(distances[i], basis.data() + i * stride, nullptr);
        functions_.compute(basis.data(), static_cast<int>(distances.size()), 0, functions_.column_count(), values.data());
        std::copy(values.begin(), values.end(), rows);
    };
    ThreadTeam team(1);
    const kernels::SplineTable<Real> table(sample, functions_.column_count(), 0.0, weights.cutoff, team);
    // One table for all blocks has one grid; a copy strip by strip puts together what is read together.
    grid_ = table.view();
    const size_t columns = static_cast<size_t>(functions_.column_count()), row_count = table.coefficients().size() / (2 * columns);
    table_size_ = row_count * kTableRow;
    tables_.resize_discard(table.coefficients().size());
    for (size_t strip = 0; strip < columns / kStripColumns; ++strip)
        for (size_t half = 0; half < 2 * row_count; ++half)  // c and d of each row
            std::copy_n(table.coefficients().data() + half * columns + strip * kStripColumns, kStripColumns, tables_.data() + strip * table_size_ + half * kStripColumns);
    grid_.coefficients = nullptr;
}

template <class Real>
void Filters<Real>::start(int64_t edge_count) {
    shares_.resize_discard(static_cast<size_t>(edge_count));
    if (!is_exact_) return;
    for (Buffer<double>* buffer : {&basis_, &basis_slopes_}) buffer->resize_discard(static_cast<size_t>(edge_count * functions_.basis_stride()));
}

template <class Real>
void Filters<Real>::locate(const double* distances, int64_t begin, int64_t end) {
    for (int64_t edge = begin; edge < end; ++edge) {
        kernels::SplineShares<Real>& shares = shares_[static_cast<size_t>(edge)];
        if (!is_exact_) {
            shares = grid_.locate(distances[edge]);
            continue;
        }
        // A row for each edge: the value is its center, the slope its difference.
        shares = {};
        shares.interval = edge - begin;
        shares.slope[kCenter] = 1;
        const int64_t at = edge * functions_.basis_stride();
        functions_.compute_basis(distances[edge], basis_.data() + at, basis_slopes_.data() + at);
    }
}

template <class Real>
const Real* Filters<Real>::strip(size_t block, int strip, int64_t begin, int64_t end, Scratch& scratch) const {
    const size_t index = strip_index(block, strip);
    if (!is_exact_) return tables_.data() + index * table_size_;
    const auto count = static_cast<size_t>(end - begin);
    for (Buffer<double>* buffer : {&scratch.values, &scratch.slopes}) buffer->resize_discard(count * kStripColumns);
    const int64_t at = begin * functions_.basis_stride();
    const int column = static_cast<int>(index) * kStripColumns;
    functions_.compute(basis_.data() + at, static_cast<int>(count), column, kStripColumns, scratch.values.data());
    functions_.compute(basis_slopes_.data() + at, static_cast<int>(count), column, kStripColumns, scratch.slopes.data());
    scratch.rows.resize_discard((count + 2 * kCenter) * kTableRow);
    std::fill(scratch.rows.begin(), scratch.rows.end(), Real(0));  // rows around an edge's are multiplied by zero
    for (size_t i = 0; i < count; ++i) {
        Real* row = scratch.rows.data() + (i + kCenter) * kTableRow;
        for (size_t k = 0; k < kStripColumns; ++k) {
            row[k] = static_cast<Real>(scratch.values[i * kStripColumns + k]);
            row[kStripColumns + k] = static_cast<Real>(scratch.slopes[i * kStripColumns + k]);
        }
    }
    return scratch.rows.data();
}

template class Filters<float>;
template class Filters<double>;

}  // namespace mlff::painn::cpu
