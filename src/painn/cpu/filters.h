// SPDX-License-Identifier: MIT
// The filters of all blocks but the first, 3F functions of the distance each, strip by strip as the kernels want them,
// and the functions that filters are made of, for the moments of the first block: from tables, or exactly.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/buffer.h"
#include "cpu_kernels/spline_table.h"
#include "painn/weights/weights.h"

namespace mlff::painn::cpu {

inline constexpr int kStripColumns = 3 * kernels::kRowPadding;  // of the three filters of a strip

// The largest weight that function n of radial.h has in the first block, or 1 where all are zero. Times it, the
// function is as large as its share of a filter, which is what the errors of tables are measured by.
double function_scale(const Weights& weights, int n);

// The exact functions. Columns are [basis_stride()], the functions that filters are made of, scaled, and [block from
// the second on][strip][filter][channel of the strip].
class FilterFunctions {
public:
    explicit FilterFunctions(const Weights& weights);

    int column_count() const { return column_count_; }
    int basis_stride() const { return kernels::padded(radial_count_ + 1); }
    // The functions that filters are made of: values, slopes (nullptr: not wanted), [basis_stride()]
    void compute_basis(double distance, double* values, double* slopes) const;
    // rows[i][columns] from basis[i][basis_stride()], for `column_count` columns from `first_column` on, both multiples
    // of kRowPadding
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
    void locate(const double* distances, int64_t begin, int64_t end);
    const kernels::SplineShares<Real>* shares() const { return shares_.data(); }  // [edge]
    // The tables to which the shares of these edges belong, [node][kSplineRows][...]: of the functions
    // [basis_stride()], and of a strip's filters [filter][channel], from the second block on.
    const Real* functions(int64_t begin, int64_t end, Scratch& scratch) const;
    const Real* strip(size_t block, int strip, int64_t begin, int64_t end, Scratch& scratch) const;
    int64_t first_node(int64_t begin) const { return is_exact_ ? begin : 0; }  // of these tables
    int basis_stride() const { return functions_.basis_stride(); }
    bool is_exact() const { return is_exact_; }

private:
    size_t strip_index(size_t block, int strip) const {
        return (block - 1) * static_cast<size_t>(strip_count_) + static_cast<size_t>(strip);
    }
    const Real* table(size_t first_column, int64_t begin, int64_t end, int column_count, Scratch& scratch) const;

    FilterFunctions functions_;
    int strip_count_;
    bool is_exact_;
    std::unique_ptr<kernels::SplineTable<Real>>
        table_;  // [node][kSplineRows][basis_stride()], then [block][strip][node][kSplineRows][filter][channel];
                 // nullptr if exact
    Buffer<kernels::SplineShares<Real>> shares_;
    Buffer<double> basis_, basis_slopes_;  // exact: [edge][basis_stride()]
};

}  // namespace mlff::painn::cpu
