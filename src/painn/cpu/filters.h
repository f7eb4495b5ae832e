// SPDX-License-Identifier: MIT
// Functions of the distance, from tables or exact: the filters of all blocks except the first, 3F for each block, in
// strips as the kernels read them; and the radial functions that filters are made of, for the moments of the first
// block.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/buffer.h"
#include "cpu_kernels/spline_table.h"
#include "painn/weights/weights.h"

namespace mlff::painn::cpu {

inline constexpr int kStripColumns = 3 * kernels::kRowPadding;  // the three filters of a strip

// The largest weight of function n of radial.h in the first block; 1 if all are zero. In tables, functions are
// multiplied by it: they are then as large as their terms in filters, which is what errors are measured by.
double function_scale(const Weights& weights, int n);

// Exact functions. The columns are
//   [basis_stride()]                              the scaled radial functions, then
//   [block][strip][filter][channel of the strip]  the filters, from the second block on
class FilterFunctions {
public:
    explicit FilterFunctions(const Weights& weights);

    int column_count() const { return column_count_; }
    int basis_stride() const { return kernels::padded(radial_count_ + 1); }
    // The radial functions, unscaled. `values` and `slopes` (nullptr: not wanted) are [basis_stride()].
    void compute_basis(double distance, double* values, double* slopes) const;
    // Computes rows[i][column] from basis[i][basis_stride()], for `column_count` columns from `first_column` on. Both
    // are multiples of kRowPadding.
    void compute(const double* basis, int count, int first_column, int column_count, double* rows) const;

private:
    int radial_count_, column_count_;
    double cutoff_;
    Buffer<double> weight_;  // matrix [R + 1][column], the bias first
};

template <class Real>
class Filters {
public:
    // Memory of one thread, for exact filters.
    struct Scratch {
        Buffer<double> values, slopes;
        Buffer<Real> rows;
    };

    Filters(const Weights& weights, bool is_exact);

    // Allocates memory for the edges.
    void start(int64_t edge_count);
    // Computes the shares of these edges.
    void locate(const double* distances, int64_t begin, int64_t end);
    const kernels::SplineShares<Real>* shares() const { return shares_.data(); }  // [edge]
    // The tables for the shares of these edges: [node][kSplineRows][basis_stride()] of the radial functions, and
    // [node][kSplineRows][filter][channel] of the filters of a strip, from the second block on.
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
    // [node][kSplineRows][basis_stride()], then [block][strip][node][kSplineRows][filter][channel]; nullptr if exact
    std::unique_ptr<kernels::SplineTable<Real>> table_;
    Buffer<kernels::SplineShares<Real>> shares_;
    Buffer<double> basis_, basis_slopes_;  // [edge][basis_stride()], if exact
};

}  // namespace mlff::painn::cpu
