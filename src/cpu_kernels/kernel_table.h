// SPDX-License-Identifier: MIT
// The inner loops of the CPU backends of all models, compiled once for each instruction set and chosen when the program runs.
//
// Rows of channels are padded with zeros to a multiple of kRowPadding, start at multiples of 64 bytes, and are processed
// whole: no kernel has a loop for a rest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/host_device.h"

namespace mlff::kernels {

inline constexpr int kRowPadding = 16;  // numbers: 64 bytes of float, 128 of double
inline constexpr int kSplineOrder = 5;  // differences that take part in one interpolation (quintic)

inline constexpr int padded(int count) { return (count + kRowPadding - 1) / kRowPadding * kRowPadding; }

// Matrices [depth][width] lie in strips of kRowPadding columns, so that a strip is one stretch of memory.
inline constexpr size_t matrix_index(size_t row, size_t column, size_t depth) {
    return (column / kRowPadding * depth + row) * kRowPadding + column % kRowPadding;
}

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

template <class Real>
MLFF_HOST_DEVICE Real value_at(const SplinePoint<Real>& point, int column) {
    Real sum = point.center[column];
    for (int t = 0; t < kSplineOrder; ++t) sum += point.value[t] * point.differences[t * point.stride + column];
    return sum;
}
template <class Real>
MLFF_HOST_DEVICE Real slope_at(const SplinePoint<Real>& point, int column) {
    Real sum = 0;
    for (int t = 0; t < kSplineOrder; ++t) sum += point.slope[t] * point.differences[t * point.stride + column];
    return sum;
}

// One path of some edges of one atom in reverse: what is read and what is added to.
template <class Real>
struct ReverseEdges {
    int edge_count = 0;
    const SplinePoint<Real>* points = nullptr;           // [edge]
    int column = 0;                                      // of the path
    const Real* const* features = nullptr;               // [edge] -> [a][stride], of the sender
    const Real* const* sums_gradient = nullptr;          // [edge] -> [c][stride], of the receiver
    Real* features_gradient = nullptr;                   // [a][stride], of the sender of all edges, or nullptr
    Real* radial_gradient = nullptr;                     // [edge][radial_stride], or nullptr
    int radial_stride = 0;
    const Real* shares = nullptr;                        // [edge][a][c]
    Real* shares_gradient = nullptr;                     // [edge][a][c], overwritten
    Real* slopes = nullptr;                              // [edge]
    int component_count = 0, out_count = 0, stride = 0;  // of a, c and k
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

// Where a distance falls in a table of PaiNN's filters: value = c[interval + 2] + sum of value[t] d[interval + t], slope = sum of slope[t] d[interval + t].
template <class Real>
struct SplineShares {
    int64_t interval = 0;
    Real value[kSplineOrder] = {};
    Real slope[kSplineOrder] = {};
};

// Moments of the edges of an atom: with the functions b_n of an edge's distance, in the same table as the filters,
//   scalars[element of the sender][n] = sum of b_n,  vectors[element][c][n] = sum of b_n u_c.
// In reverse these are the gradients by the moments.
template <class Real>
struct PainnMoments {
    const Real* table = nullptr;                 // [row][c, d][stride]
    int64_t first_row = 0;                       // of the table, counted in intervals
    const SplineShares<Real>* shares = nullptr;  // [edge]
    const Real* directions = nullptr;            // [edge][3]
    const int32_t* sender = nullptr;             // [edge]
    const int* element_slot = nullptr;           // [atom]
    int64_t begin = 0, end = 0;                  // edges
    int stride = 0;                              // of n
    int64_t slot_stride = 0;                     // in atoms
    Real* scalars = nullptr;                     // [slot][slot_stride][stride]
    Real* vectors = nullptr;                     // [slot][slot_stride][3][stride]
};

// An edge that messages pass. Where it stands for its reverse too, they pass it both ways, and filters are made once.
inline constexpr int kLinkValue = 0, kLinkSlope = kSplineOrder, kLinkDirection = 2 * kSplineOrder;  // places in `factors`
template <class Real>
struct PainnLink {
    Real factors[kRowPadding] = {};  // shares of the value and of the slope, and the direction from the receiver to the sender
    int64_t interval = 0;            // of the table
    int64_t edge = 0;
    int64_t atom = 0;                // the edge's sender
};
struct PainnLinkCount {
    int32_t both_ways = 0;  // these first
    int32_t all = 0;
};

// One strip of kRowPadding channels in a block of PaiNN (docs/painn.md), for some atoms: a strip of the table is small enough to stay in a near cache
// while all edges pass. Of every edge it has the filters for the scalars, for the vectors and for the direction. Links that pass both ways are between
// these atoms; in links that pass one way they receive forward, and send in reverse.
template <class Real>
struct PainnStrip {
    const Real* table = nullptr;             // [row][c, d][scalars, vectors, direction][kRowPadding]
    int64_t first_row = 0;                   // of the table, counted in intervals
    const PainnLink<Real>* links = nullptr;  // those of an atom from first[atom] on
    const PainnLinkCount* counts = nullptr;  // [atom]
    const int64_t* first = nullptr;          // [atom + 1]
    int64_t begin = 0, end = 0;              // atoms
    const Real* senders = nullptr;           // [atom][phi_s, phi_u, phi_v v_x, phi_v v_y, phi_v v_z][kRowPadding]
};
template <class Real>
struct PainnMessages : PainnStrip<Real> {
    Real* sums = nullptr;  // [atom][s, v_x, v_y, v_z][kRowPadding], overwritten
};
template <class Real>
struct PainnReverse : PainnStrip<Real> {
    const Real* gradients = nullptr;   // [atom][s, v_x, v_y, v_z][kRowPadding]: by what messages are added to
    Real* edge_gradients = nullptr;    // [edge][4]: by the distance and by the direction of each link's edge
    Real* senders_gradient = nullptr;  // as `senders`, overwritten
};

template <class Real>
struct KernelTable {
    // out[r][w] (+)= sum over u < depth of in[r][u] * weight[matrix_index(u, w, depth)], for each of `row_count` rows and all w < width.
    void (*multiply_rows)(const Real* const* in, Real* const* out, int row_count, const Real* weight, int depth, int width,
                          bool accumulate);

    // products[e][a][k] = R[k] * features[e][a * stride + k],  R from column `column` of the table at points[e]
    void (*weigh_features)(const SplinePoint<Real>* points, int column, const Real* const* features, int component_count,
                           int stride, int edge_count, Real* products);

    // values[e][k] = R[k], slopes[e][k] = R'[k] (if not null), for the first `count` columns of the table at points[e]
    void (*interpolate)(const SplinePoint<Real>* points, int count, int edge_count, Real* values, Real* slopes);

    // out[r] = sum over k of a[r][k] * b[r][k]
    void (*dot_rows)(const Real* a, const Real* b, int stride, int row_count, Real* out);

    // sums[c][k] += sum over q of shares[q * share_stride + c] * products[q][k]
    void (*sum_products)(const Real* shares, int share_stride, const Real* products, int product_count, int out_count, int stride, Real* sums);

    //   S[a] = sum_c shares[a][c] sums_gradient[c];  features_gradient[a] += R S[a];  radial_gradient[k] += sum_a features[a][k] S[a][k]
    //   slopes += sum over k of R'[k] * sum_a features[a][k] S[a][k];  shares_gradient[a][c] = sum_k R features[a] sums_gradient[c]
    void (*reverse_edges)(const ReverseEdges<Real>& edges);

    // out[M][k] for 16 channels: in and out point at the first of them, rows are `stride` apart; coefficients [index][16].
    void (*evaluate_polynomial)(const Polynomial& polynomial, const Real* coefficients, const Real* in, int stride, Real* out);
    // in_gradient[row] += sum over M of out_gradient[M] d out[M] / d in[row]
    void (*reverse_polynomial)(const Polynomial& polynomial, const Real* coefficients, const Real* in, int stride,
                               const Real* out_gradient, Real* in_gradient);

    // Adds to the moments.
    void (*sum_painn_moments)(const PainnMoments<Real>& moments);
    // edge_gradients[edge][4] = gradients by the distance and the direction
    void (*reverse_painn_moments)(const PainnMoments<Real>& gradients, Real* edge_gradients);

    // sums = sum of x_s, sum of x_v v_j + x_u u
    void (*sum_painn_messages)(const PainnMessages<Real>& messages);
    void (*reverse_painn_messages)(const PainnReverse<Real>& messages);

    // values[k] = silu(values[k]), slopes[k] = silu'(values[k]), k < count, a multiple of kRowPadding
    void (*activate_silu)(Real* values, Real* slopes, int count);

    // For the processor's peak: so many rounds of independent multiply-adds on registers; *result is to be zero, and then 78. Returns the operations, two each.
    double (*multiply_add)(int64_t rounds, Real* result);

    std::string_view name;  // "neon", "avx2", "avx512", "baseline"
};

// The best that this processor has, or the one named by the environment variable MLFF_CPU. Throws Error{argument} if that
// names one that is not there.
template <class Real>
const KernelTable<Real>& choose_kernels();

std::string kernel_names();  // those this processor can run, best first

}  // namespace mlff::kernels
