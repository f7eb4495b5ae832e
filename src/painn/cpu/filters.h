// SPDX-License-Identifier: MIT
// The filters of all blocks, 3F functions of the distance each, strip by strip as the kernels want them: from tables, or exactly.
#pragma once

#include <span>
#include <vector>

#include "core/buffer.h"
#include "cpu_kernels/spline_table.h"
#include "painn/weights.h"

namespace mlff::painn::cpu {

inline constexpr int kStripColumns = 3 * kernels::kRowPadding;  // of the three filters of a strip

// The exact functions. Columns are [block][strip][filter][channel of the strip].
class FilterFunctions {
public:
    explicit FilterFunctions(const Weights& weights);

    int column_count() const { return column_count_; }
    int basis_stride() const { return kernels::padded(radial_count_ + 1); }
    // The functions that filters are made of: values, slopes (nullptr: not wanted), [basis_stride()]
    void compute_basis(double distance, double* values, double* slopes) const;
    // rows[i][columns] from basis[i][basis_stride()], for `column_count` columns from `first_column` on, both multiples of kRowPadding
    void compute(const double* basis, int count, int first_column, int column_count, double* rows) const;

private:
    int radial_count_, column_count_;
    double cutoff_;
    Buffer<double> weight_;  // matrix [R + 1][column], the bias first
};

template <class Real>
class Filters {
public:
    // Memory of one worker, for exact filters.
    struct Scratch {
        Buffer<double> values, slopes;
        Buffer<Real> rows;
    };

    Filters(const Weights& weights, bool is_exact);

    // Makes room for what is known of each edge.
    void start(int64_t edge_count);
    // The edges `begin` to `end`, which are later asked for together.
    void locate(const double* distances, int64_t begin, int64_t end);
    const kernels::SplineShares<Real>* shares() const { return shares_.data(); }  // [edge]
    // The table to which the shares of these edges belong; [row][c, d][filter][channel].
    const Real* strip(size_t block, int strip, int64_t begin, int64_t end, Scratch& scratch) const;

private:
    size_t strip_index(size_t block, int strip) const { return block * static_cast<size_t>(strip_count_) + static_cast<size_t>(strip); }

    FilterFunctions functions_;
    int strip_count_;
    bool is_exact_;
    kernels::SplineTableView<Real> grid_;
    size_t table_size_ = 0;  // of a strip
    Buffer<Real> tables_;    // [block][strip][row][c, d][filter][channel]
    Buffer<kernels::SplineShares<Real>> shares_;
    Buffer<double> basis_, basis_slopes_;  // exact: [edge][basis_stride()]
};

}  // namespace mlff::painn::cpu
