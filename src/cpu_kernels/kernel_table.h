// SPDX-License-Identifier: MIT
// The inner loops of the CPU backends of all models, compiled once for each instruction set (instruction_set.h) and
// chosen when the program runs.
//
// Rows of channels are padded with zeros to a multiple of kRowPadding, start at multiples of 64 bytes, and are
// processed whole: no kernel has a loop for a rest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/host_device.h"

namespace mlff::kernels {

inline constexpr int kRowPadding = 16;  // numbers: 64 bytes of float, 128 of double
inline constexpr int kSplineOrder =
    5;  // rows that are added to the value at the beginning of the interval: quintic interpolation
inline constexpr int kSplineRows = 4;  // of each node: f, the difference to the next f, h f', h^2 f''

inline constexpr int padded(int count) { return (count + kRowPadding - 1) / kRowPadding * kRowPadding; }

// Matrices [depth][width] lie in strips of kRowPadding columns, so that a strip is one stretch of memory.
inline constexpr size_t matrix_index(size_t row, size_t column, size_t depth) {
    return (column / kRowPadding * depth + row) * kRowPadding + column % kRowPadding;
}

// Which row, counted from the first of the interval's node, has share t (spline_formulas.inc).
MLFF_HOST_DEVICE inline constexpr int spline_row(int t) { return t < kSplineRows - 1 ? t + 1 : t + 3; }

// Where a distance falls in a radial table [node][kSplineRows][column]:
//   value = row 0 + sum over t of value[t] * row spline_row(t),  slope = sum over t of slope[t] * row spline_row(t).
// Rows of differences and slopes, rounded after they were formed, keep slopes as exact as values in single precision.
template <class Real>
struct SplinePoint {
    const Real* row = nullptr;  // the first of the node, at the first column
    ptrdiff_t stride = 0;       // from row to row
    Real value[kSplineOrder] = {};
    Real slope[kSplineOrder] = {};

    MLFF_HOST_DEVICE const Real* share_row(int t) const { return row + spline_row(t) * stride; }
};

template <class Real>
MLFF_HOST_DEVICE Real value_at(const SplinePoint<Real>& point, int column) {
    Real sum = point.row[column];
    for (int t = 0; t < kSplineOrder; ++t) sum += point.value[t] * point.share_row(t)[column];
    return sum;
}
template <class Real>
MLFF_HOST_DEVICE Real slope_at(const SplinePoint<Real>& point, int column) {
    Real sum = 0;
    for (int t = 0; t < kSplineOrder; ++t) sum += point.slope[t] * point.share_row(t)[column];
    return sum;
}

// The same for some edges, in a table [block of columns][node][kSplineRows][width of the block].
inline constexpr int kEdgesPerBatch = 32;  // a multiple of kRowPadding
template <class Real>
struct SplinePoints {
    const Real* table = nullptr;
    int row_count = 0;  // of each block
    alignas(64) int32_t interval[kEdgesPerBatch];
    alignas(64) Real value[kSplineOrder][kEdgesPerBatch];
    alignas(64) Real slope[kSplineOrder][kEdgesPerBatch];

    // The first row of an edge's node in the block that begins at `column`.
    const Real* row(int edge, int column, int width) const {
        return table + (ptrdiff_t{column} * row_count + ptrdiff_t{interval[edge]} * kSplineRows * width);
    }
};
template <class Real>
Real value_at(const SplinePoints<Real>& points, int edge, int column, int width, int k) {
    const Real* row = points.row(edge, column, width) + k;
    Real sum = row[0];
    for (int t = 0; t < kSplineOrder; ++t) sum += points.value[t][edge] * row[spline_row(t) * width];
    return sum;
}
template <class Real>
Real slope_at(const SplinePoints<Real>& points, int edge, int column, int width, int k) {
    const Real* row = points.row(edge, column, width) + k;
    Real sum = 0;
    for (int t = 0; t < kSplineOrder; ++t) sum += points.slope[t][edge] * row[spline_row(t) * width];
    return sum;
}

// Intervals of a table, from `low` on.
struct SplineGrid {
    double low = 0, inverse_step = 0;
    int interval_count = 0;
};

// Where functions of the distance go: that of column k of edge e to values[e * edge_stride + k / kRowPadding *
// strip_stride + k % kRowPadding].
template <class Real>
struct FunctionRows {
    Real* values = nullptr;
    Real* slopes = nullptr;  // the same, or nullptr: not wanted
    int width = 0;           // columns
    ptrdiff_t edge_stride = 0, strip_stride = 0;
};

// A multiple of one row of kEdgesPerBatch numbers that is added to another.
template <class Real>
struct RowShare {
    int32_t to = 0, from = 0;
    Real share = 0;
};

// One path of the tensor product along some edges: what is sent along edge e from component a to component c is
//   shares[a][c][e] R[k] features[e][a][k],  R in the block of the table that begins at `column`.
template <class Real>
struct MessageEdges {
    int edge_count = 0;
    const SplinePoints<Real>* points = nullptr;
    int column = 0;
    const Real* const* features = nullptr;               // [edge] -> [a][stride]
    const Real* shares = nullptr;                        // [a][c][kEdgesPerBatch]
    int component_count = 0, out_count = 0, stride = 0;  // of a, c and k
};

// Gradients by what a message is made of, from those by the sums that it is added to.
template <class Real>
struct MessageGradients {
    const Real* const* sums = nullptr;  // [edge] -> [c][stride]
    Real* const* features = nullptr;    // [edge] -> [a][stride]; nullptr: not wanted
    Real* radial = nullptr;             // [edge][radial_stride]; nullptr: not wanted
    ptrdiff_t radial_stride = 0;
    Real* shares = nullptr;  // [a][c][kEdgesPerBatch], overwritten
    Real* slopes = nullptr;  // [kEdgesPerBatch]
    Real* work = nullptr;    // message_work_size numbers
};
inline constexpr size_t message_work_size(int share_count, int stride) {
    return static_cast<size_t>(share_count + 1) * kRowPadding * kRowPadding + 2 * static_cast<size_t>(stride);
}

// The symmetric contraction as a tree of monomials, cut into steps in preorder. A node stands for the product of the
// rows on the way to it; its value is
//   coefficient + sum over leaves of in[row] coefficient + sum over other children of in[row] value(child).
// A step begins a node, has all of its leaves, and ends the nodes that have no more children. Coefficients are in the
// order in which steps need them.
inline constexpr int kPolynomialLevels = 4;
struct PolynomialStep {
    int32_t row = 0;          // what the parent multiplies this node by
    int32_t level = 0;        // 0: the root of the next row of the result
    int32_t leaf_count = 0;   // the next of `leaf_rows`
    int32_t close_count = 0;  // nodes that end here: this one first, then its ancestors
};
struct Polynomial {
    const PolynomialStep* steps = nullptr;
    const int32_t* leaf_rows = nullptr;
    int step_count = 0;
    int in_row_count = 0, out_row_count = 0;
    int coefficient_count = 0;
};

// kRowPadding channels of some atoms; rows are `stride` apart, atoms `in_step` and `out_step`.
template <class Real>
struct PolynomialRows {
    const Real* coefficients = nullptr;  // [coefficient][kRowPadding]
    const Real* in = nullptr;
    int atom_count = 0;
    int stride = 0;
    ptrdiff_t in_step = 0, out_step = 0;
    Real* work = nullptr;  // polynomial_work_size numbers
};
inline constexpr size_t polynomial_work_size(int in_row_count) {
    constexpr size_t kMostAtoms = 8;
    return (2 * static_cast<size_t>(in_row_count) + 2 * kPolynomialLevels) * kMostAtoms * kRowPadding;
}

// Where a distance falls in a table of PaiNN's filters, as in SplinePoint.
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
    const Real* table = nullptr;                 // [node][kSplineRows][stride]
    int64_t first_node = 0;                      // of the table
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
inline constexpr int kLinkValue = 0, kLinkSlope = kSplineOrder,
                     kLinkDirection = 2 * kSplineOrder;  // places in `factors`
template <class Real>
struct PainnLink {
    Real factors[kRowPadding] =
        {};                // shares of the value and of the slope, and the direction from the receiver to the sender
    int64_t interval = 0;  // of the table
    int64_t edge = 0;
    int64_t atom = 0;  // the edge's sender
};
struct PainnLinkCount {
    int32_t both_ways = 0;  // these first
    int32_t all = 0;
};

// One strip of kRowPadding channels in a block of PaiNN (docs/painn.md), for some atoms: a strip of the table is small
// enough to stay in a near cache while all edges pass. Of every edge it has the filters for the scalars, for the
// vectors and for the direction. Links that pass both ways are between these atoms; in links that pass one way they
// receive forward, and send in reverse.
template <class Real>
struct PainnStrip {
    const Real* table = nullptr;             // [node][kSplineRows][scalars, vectors, direction][kRowPadding]
    int64_t first_node = 0;                  // of the table
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

// Rows of F of x, y and z, so many numbers from one component to the next.
template <class Real>
struct PainnComponents {
    Real* first = nullptr;
    int stride = 0;

    Real* operator[](int component) const { return first + component * stride; }
};
// U v and V v of one atom, V v right behind U v.
template <class Real>
using PainnMixed = PainnComponents<const Real>;

// The gradient of U v and V v, from those after the update and that of the norms. vectors_gradient may be nullptr:
// zero.
template <class Real>
struct PainnMixedGradient {
    PainnMixed<Real> mixed;
    const Real *inverse_norms = nullptr, *gates = nullptr;
    const Real *scalars_gradient = nullptr, *vectors_gradient = nullptr, *norms_gradient = nullptr;
    PainnComponents<Real> mixed_gradient;
};

template <class Real>
struct KernelTable {
    // out[r][w] (+)= sum over u < depth of in[r][u] * weight[matrix_index(u, w, depth)], for each of `row_count` rows
    // and all w < width.
    void (*multiply_rows)(const Real* const* in, Real* const* out, int row_count, const Real* weight, int depth,
                          int width, bool accumulate);

    // out[column * out_stride + row] = in[row * in_stride + column], for multiples of kRowPadding rows and columns
    void (*transpose)(const Real* in, ptrdiff_t in_stride, int row_count, int column_count, Real* out,
                      ptrdiff_t out_stride);

    // Intervals and shares of kEdgesPerBatch distances.
    void (*find_points)(const double* distances, const SplineGrid& grid, SplinePoints<Real>& points);

    // The first out.width columns of the table, which are a block, and their slopes.
    void (*interpolate)(const SplinePoints<Real>& points, int edge_count, const FunctionRows<Real>& out);

    // harmonics[lm][e] of the unit vectors directions[3][e], up to max_degree <= 3, for kEdgesPerBatch edges
    void (*compute_harmonics)(int max_degree, const double* directions, Real* harmonics);
    // by_vector[3][e] = gradient of the sum over lm of gradient[lm][e] Y[lm] by the vector lengths[e] *
    // directions[3][e]
    void (*reverse_harmonics)(int max_degree, const double* directions, const double* lengths, const Real* gradient,
                              double* by_vector);

    // to[share.to][e] += share.share * from[share.from][e], one share after the other, for kEdgesPerBatch edges
    void (*add_scaled_rows)(const RowShare<Real>* shares, int count, const Real* from, Real* to);

    // sums[e][c][k] += what edge e sends, one edge after the other
    void (*sum_messages)(const MessageEdges<Real>& edges, Real* const* sums);

    //   S[a] = sum_c shares[a][c] sums[c];  features[a] += R S[a];  radial[k] += sum_a features[a][k] S[a][k]
    //   slopes += sum over k of R'[k] * sum_a features[a][k] S[a][k];  shares[a][c] = sum_k R features[a] sums[c]
    void (*reverse_messages)(const MessageEdges<Real>& edges, const MessageGradients<Real>& gradients);

    // out[atom][row][k]
    void (*evaluate_polynomial)(const Polynomial& polynomial, const PolynomialRows<Real>& rows, Real* out);
    // in_gradient[atom][row] += sum over M of out_gradient[atom][M] d out[M] / d in[row]
    void (*reverse_polynomial)(const Polynomial& polynomial, const PolynomialRows<Real>& rows, const Real* out_gradient,
                               Real* in_gradient);

    // Adds to the moments.
    void (*sum_painn_moments)(const PainnMoments<Real>& moments);
    // edge_gradients[edge][4] = gradients by the distance and the direction
    void (*reverse_painn_moments)(const PainnMoments<Real>& gradients, Real* edge_gradients);

    // sums = sum of x_s, sum of x_v v_j + x_u u
    void (*sum_painn_messages)(const PainnMessages<Real>& messages);
    void (*reverse_painn_messages)(const PainnReverse<Real>& messages);

    // Updates of PaiNN, for one atom (painn/reference/update.h); `gates` are a_ss, a_sv, a_vv, F = hidden numbers each.
    // norms[F] = sqrt(sum over x, y, z of (V v)^2 + floor), and one over them
    void (*compute_painn_norms)(int hidden, PainnMixed<Real> mixed, Real floor, Real* norms, Real* inverse_norms);
    // scalars[F] += a_ss + a_sv * dot
    void (*add_to_painn_scalars)(int hidden, PainnMixed<Real> mixed, const Real* gates, Real* scalars);
    // updated[3][F] = vectors + a_vv * (U v)
    void (*update_painn_vectors)(int hidden, PainnMixed<Real> mixed, const Real* gates,
                                 PainnComponents<const Real> vectors, Real* updated);
    // gates_gradient, from the gradients after the update; vectors_gradient [3][F] may be nullptr: zero, and a_vv has
    // none.
    void (*reverse_painn_gates)(int hidden, PainnMixed<Real> mixed, const Real* scalars_gradient,
                                const Real* vectors_gradient, Real* gates_gradient);
    void (*reverse_painn_mixed)(int hidden, const PainnMixedGradient<Real>& rows);
    // What an atom sends with its vectors, phi_v v, and in reverse the gradients of both; those of v are added to.
    void (*weigh_painn_vectors)(int hidden, const Real* phi, const Real* vectors, Real* sent);
    void (*reverse_painn_weighing)(int hidden, const Real* phi, const Real* vectors, const Real* sent_gradient,
                                   Real* phi_gradient, Real* vectors_gradient);

    // values[k] = silu(values[k]), slopes[k] = silu'(values[k]), k < count, a multiple of kRowPadding
    void (*activate_silu)(Real* values, Real* slopes, int count);

    // For the processor's peak: so many rounds of independent multiply-adds on registers; *result is to be zero, and
    // then 78. Returns the operations, two each.
    double (*multiply_add)(int64_t rounds, Real* result);

    std::string_view name;  // "neon", "avx2", "avx512", "baseline"
};

// The best of `available_kernels` that computes what scalar code does (kernel_check.h), or the one named by the
// environment variable MLFF_CPU. Throws Error{argument} if that names one that is not there, and Error{device} if it,
// or all, are wrong.
template <class Real>
const KernelTable<Real>& choose_kernels();

std::string kernel_names();  // those this processor can run, best first

}  // namespace mlff::kernels
