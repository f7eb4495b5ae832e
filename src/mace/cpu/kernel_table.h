// SPDX-License-Identifier: MIT
// The inner loops of the CPU backend, compiled once for each instruction set and chosen when the program runs.
//
// Rows of channels are padded with zeros to a multiple of kRowPadding, start at multiples of 64 bytes, and are processed
// whole: no kernel has a loop for a rest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace mlff::mace::cpu {

inline constexpr int kRowPadding = 16;  // numbers: 64 bytes of float, 128 of double
inline constexpr int kSplineOrder = 5;  // differences that take part in one interpolation (quintic)

inline constexpr int padded(int count) { return (count + kRowPadding - 1) / kRowPadding * kRowPadding; }

// Where a distance falls in a radial table:
//   value = center + sum over t of value[t] * difference[t],  slope = sum over t of slope[t] * difference[t].
// Differences of neighbouring coefficients, rounded after they were formed, keep slopes as exact as values in single precision.
template <class Real>
struct SplinePoint {
    const Real* center = nullptr;       // at the first column
    const Real* differences = nullptr;  // the first of them
    ptrdiff_t stride = 0;               // from one to the next
    Real value[kSplineOrder] = {};
    Real slope[kSplineOrder] = {};
};

// The symmetric contraction as a tree of monomials. A node stands for the product of the rows on the way to it; its value is
//   coefficient + sum over leaves of A[row] coefficient + sum over children of A[row] value(child).
struct PolynomialNode {
    int32_t row = 0;            // what the parent multiplies this node by
    int32_t coefficient = 0;    // index of the node's own coefficient
    int32_t leaf_begin = 0, leaf_end = 0;    // into `leaf_rows`; coefficients follow on from `leaf_coefficient`
    int32_t leaf_coefficient = 0;
    int32_t child_begin = 0, child_end = 0;  // into `nodes`
};

struct Polynomial {
    const PolynomialNode* nodes = nullptr;
    const int32_t* leaf_rows = nullptr;
    const int32_t* roots = nullptr;  // [out_row_count], into `nodes`
    int in_row_count = 0, out_row_count = 0;
    int coefficient_count = 0;
};

template <class Real>
struct KernelTable {
    // out[r][0 ... width) (+)= sum over u < depth of in[r][u] * weight[u * width + ...], for each of `row_count` rows.
    void (*multiply_rows)(const Real* const* in, Real* const* out, int row_count, const Real* weight, int depth, int width,
                          bool accumulate);

    // products[e][a][k] = R[k] * features[e][a * stride + k],  R from column `column` of the table at points[e]
    void (*weigh_features)(const SplinePoint<Real>* points, int column, const Real* const* features, int component_count,
                           int stride, int edge_count, Real* products);

    // sums[c][k] += sum over q of shares[q * out_count + c] * products[q][k]
    void (*sum_products)(const Real* shares, const Real* products, int product_count, int out_count, int stride, Real* sums);

    // One path of one edge, in reverse. shares: [a][c]; features, features_gradient: [a][stride]; sums_gradient: [c][stride].
    //   S[a] = sum_c shares[a][c] sums_gradient[c];  features_gradient[a] += R S[a] (if not null)
    //   returns sum over k of R'[k] * sum_a features[a][k] S[a][k];  shares_gradient[a][c] = sum_k R features[a] sums_gradient[c]
    Real (*reverse_edge)(const SplinePoint<Real>& point, int column, const Real* features, Real* features_gradient,
                         const Real* sums_gradient, const Real* shares, Real* shares_gradient, int component_count, int out_count,
                         int stride);

    // out[M][k] for 16 channels: in and out point at the first of them, rows are `stride` apart; coefficients [index][16].
    void (*evaluate_polynomial)(const Polynomial& polynomial, const Real* coefficients, const Real* in, int stride, Real* out);
    // in_gradient[row] += sum over M of out_gradient[M] d out[M] / d in[row]
    void (*reverse_polynomial)(const Polynomial& polynomial, const Real* coefficients, const Real* in, int stride,
                               const Real* out_gradient, Real* in_gradient);

    std::string_view name;  // "neon", "avx2", "avx512", "baseline"
};

// The best that this processor has, or the one named by the environment variable MLFF_CPU. Throws Error{argument} if that
// names one that is not there.
template <class Real>
const KernelTable<Real>& choose_kernels();

std::string kernel_names();  // those this processor can run, best first

}  // namespace mlff::mace::cpu
