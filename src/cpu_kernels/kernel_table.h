// SPDX-License-Identifier: MIT
// The inner loops of all CPU backends. Compiled once for each instruction set (instruction_set.h) and selected at run
// time.
//
// Rows of channels are zero-padded to a multiple of kRowPadding and aligned to 64 bytes. Kernels process whole rows, so
// they have no remainder loops.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/host_device.h"

namespace mlff::kernels {

inline constexpr int kRowPadding = 16;  // numbers: 64 bytes of float, 128 of double
inline constexpr int kSplineOrder =
    5;  // terms added to the value at the beginning of the interval: quintic interpolation
inline constexpr int kSplineRows = 4;  // per node: f, the difference to the next f, h f', h^2 f''

inline constexpr int padded(int count) { return (count + kRowPadding - 1) / kRowPadding * kRowPadding; }

// Matrices [depth][width] are stored in strips of kRowPadding columns, each contiguous.
inline constexpr size_t matrix_index(size_t row, size_t column, size_t depth) {
    return (column / kRowPadding * depth + row) * kRowPadding + column % kRowPadding;
}

// The row of term t, counted from the first row of the interval's node (spline_formulas.inc).
MLFF_HOST_DEVICE inline constexpr int spline_row(int t) { return t < kSplineRows - 1 ? t + 1 : t + 3; }

// The place of a distance in a radial table [node][kSplineRows][column]:
//   value = row 0 + sum over t of value[t] * row spline_row(t),  slope = sum over t of slope[t] * row spline_row(t).
// Differences and slopes are formed before rounding, so in single precision slopes are as accurate as values.
template <class Real>
struct SplinePoint {
    const Real* row = nullptr;  // first row of the node, at the first column
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

// The same for a batch of edges, in a table [block of columns][node][kSplineRows][width of the block].
inline constexpr int kEdgesPerBatch = 32;  // a multiple of kRowPadding
template <class Real>
struct SplinePoints {
    const Real* table = nullptr;
    int row_count = 0;  // per block
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

// The intervals of a table, beginning at `low`.
struct SplineGrid {
    double low = 0, inverse_step = 0;
    int interval_count = 0;
};

// Where functions of the distance are written. Column k of edge e goes to
//   values[e * edge_stride + k / kRowPadding * strip_stride + k % kRowPadding].
template <class Real>
struct FunctionRows {
    Real* values = nullptr;
    Real* slopes = nullptr;  // the same, or nullptr: not wanted
    int width = 0;           // columns
    ptrdiff_t edge_stride = 0, strip_stride = 0;
};

// Adds a multiple of one row of kEdgesPerBatch numbers to another.
template <class Real>
struct RowShare {
    int32_t to = 0, from = 0;
    Real share = 0;
};

// One path of the tensor product along some edges. The message along edge e from component a to component c is
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

// Gradients with respect to the inputs of a message, from those with respect to the sums it is added to.
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

// The symmetric contraction as a tree of monomials, split into steps in preorder. A node is the product of the rows on
// the path to it. Its value is
//   coefficient + sum over leaves of in[row] coefficient + sum over other children of in[row] value(child).
// A step begins a node, processes all of its leaves, and ends the nodes that have no more children. Coefficients are
// stored in the order in which the steps use them.
inline constexpr int kPolynomialLevels = 4;
struct PolynomialStep {
    int32_t row = 0;          // the row by which the parent multiplies this node
    int32_t level = 0;        // 0: the root of the next row of the result
    int32_t leaf_count = 0;   // number of next `leaf_rows` to use
    int32_t close_count = 0;  // nodes that end here: this one first, then its ancestors
};
struct Polynomial {
    const PolynomialStep* steps = nullptr;
    const int32_t* leaf_rows = nullptr;
    int step_count = 0;
    int in_row_count = 0, out_row_count = 0;
    int coefficient_count = 0;
};

// kRowPadding channels of some atoms. Rows are `stride` apart, atoms `in_step` and `out_step`.
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

// The place of a distance in a table of PaiNN's filters, as in SplinePoint.
template <class Real>
struct SplineShares {
    int64_t interval = 0;
    Real value[kSplineOrder] = {};
    Real slope[kSplineOrder] = {};
};

// Moments of the edges of an atom. The functions b_n of the distance are in the same table as the filters:
//   scalars[element of the sender][n] = sum of b_n,  vectors[element][c][n] = sum of b_n u_c.
// In the reverse pass these are the gradients with respect to the moments.
template <class Real>
struct PainnMoments {
    const Real* table = nullptr;                 // [node][kSplineRows][stride]
    int64_t first_node = 0;                      // first node of the table
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

// An edge along which messages pass. If it also stands for its reverse edge, messages pass in both directions, and the
// filters are computed once.
inline constexpr int kLinkValue = 0, kLinkSlope = kSplineOrder,
                     kLinkDirection = 2 * kSplineOrder;  // offsets in `factors`
template <class Real>
struct PainnLink {
    Real factors[kRowPadding] = {};  // shares of the value and of the slope; the direction from receiver to sender
    int64_t interval = 0;            // interval of the table
    int64_t edge = 0;
    int64_t atom = 0;  // the edge's sender
};
struct PainnLinkCount {
    int32_t both_ways = 0;  // stored first
    int32_t all = 0;
};

// One strip of kRowPadding channels in a block of PaiNN (docs/painn.md), for some atoms. A strip of the table is small
// enough to stay in a fast cache while all edges are processed. For each edge it holds the filters for the scalars, for
// the vectors and for the direction. Both ends of two-way links are among these atoms. In one-way links these atoms
// receive in the forward pass, and send in the reverse pass.
template <class Real>
struct PainnStrip {
    const Real* table = nullptr;             // [node][kSplineRows][scalars, vectors, direction][kRowPadding]
    int64_t first_node = 0;                  // first node of the table
    const PainnLink<Real>* links = nullptr;  // those of an atom begin at first[atom]
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
    const Real* gradients = nullptr;   // [atom][s, v_x, v_y, v_z][kRowPadding]: with respect to the sums
    Real* edge_gradients = nullptr;    // [edge][4]: with respect to the distance and direction of each link's edge
    Real* senders_gradient = nullptr;  // like `senders`, overwritten
};

// Rows of F numbers for x, y and z, `stride` apart.
template <class Real>
struct PainnComponents {
    Real* first = nullptr;
    int stride = 0;

    Real* operator[](int component) const { return first + component * stride; }
};
// U v and V v of one atom. V v directly follows U v.
template <class Real>
using PainnMixed = PainnComponents<const Real>;

// The gradient with respect to U v and V v, from the gradients after the update and that of the norms. vectors_gradient
// may be nullptr: zero.
template <class Real>
struct PainnMixedGradient {
    PainnMixed<Real> mixed;
    const Real *inverse_norms = nullptr, *gates = nullptr;
    const Real *scalars_gradient = nullptr, *vectors_gradient = nullptr, *norms_gradient = nullptr;
    PainnComponents<Real> mixed_gradient;
};

// Neighbours of one element, for one atom of DFT-D3 (docs/dispersion.md): the atoms runs[2 n] to runs[2 n + 1] of
// arrays that have kRowPadding readable numbers after the last atom. Pairs beyond the cutoff do not count, and neither
// do atoms closer than `least_square`: the atom itself.
template <class Real>
struct DispersionNeighbors {
    const Real *x = nullptr, *y = nullptr, *z = nullptr;  // [atom]
    const int32_t* runs = nullptr;
    int run_count = 0;
    Real center[3] = {};
    Real cutoff_square = 0, least_square = 0;
};
// The damping of pairs (dispersion/functions/damping.h), for C6 = sum over q of shares[q] weights[q].
inline constexpr int kMostDispersionReferences = 7;
template <class Real>
struct DispersionPairs : DispersionNeighbors<Real> {
    const Real* weights = nullptr;  // [reference][weight_stride]
    ptrdiff_t weight_stride = 0;
    int reference_count = 0;
    Real shares[kMostDispersionReferences] = {};
    Real share_slopes[kMostDispersionReferences] = {};  // derivatives by the atom's coordination number
    Real six = 0, eight = 0, six_radius = 0, eight_radius = 0;
    int half_exponent = 0;              // of damping to zero; 0: Becke-Johnson
    Real fade_begin = 0, fade_end = 0;  // distances; equal: energies do not fade
};
// The count of neighbours in coordination numbers (dispersion/functions/coordination.h).
template <class Real>
struct DispersionCounts : DispersionNeighbors<Real> {
    Real reach = 0;
    const Real* gradient = nullptr;  // [atom]: dE/dn; only for the reverse
    Real own_gradient = 0;
};
// What an atom has of its pairs; kernels add to it.
template <class Real>
struct DispersionSums {
    Real energy = 0;           // of whole pairs
    Real by_count = 0;         // dE/dn of the atom
    Real count = 0, self = 0;  // sum of counts; number of atoms closer than least_square
    Real force[3] = {};
    Real virial[6] = {};  // sum of pull times xx, yy, zz, yz, xz, xy
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

    // Intervals and shares for kEdgesPerBatch distances.
    void (*find_points)(const double* distances, const SplineGrid& grid, SplinePoints<Real>& points);

    // Interpolates the first out.width columns of the table, which form a block, and their slopes.
    void (*interpolate)(const SplinePoints<Real>& points, int edge_count, const FunctionRows<Real>& out);

    // harmonics[lm][e] of the unit vectors directions[3][e], up to max_degree <= 3, for kEdgesPerBatch edges
    void (*compute_harmonics)(int max_degree, const double* directions, Real* harmonics);
    // by_vector[3][e] = gradient of  sum over lm of gradient[lm][e] Y[lm]  with respect to the vector lengths[e] *
    // directions[3][e]
    void (*reverse_harmonics)(int max_degree, const double* directions, const double* lengths, const Real* gradient,
                              double* by_vector);

    // to[share.to][e] += share.share * from[share.from][e], one share after the other, for kEdgesPerBatch edges
    void (*add_scaled_rows)(const RowShare<Real>* shares, int count, const Real* from, Real* to);

    // sums[e][c][k] += message of edge e, one edge after the other
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
    // edge_gradients[edge][4] = gradients with respect to the distance and the direction
    void (*reverse_painn_moments)(const PainnMoments<Real>& gradients, Real* edge_gradients);

    // sums = sum of x_s, sum of x_v v_j + x_u u
    void (*sum_painn_messages)(const PainnMessages<Real>& messages);
    void (*reverse_painn_messages)(const PainnReverse<Real>& messages);

    // Updates of PaiNN, for one atom (painn/reference/update.h). `gates` are a_ss, a_sv, a_vv, F = hidden numbers each.
    // norms[F] = sqrt(sum over x, y, z of (V v)^2 + floor), and their inverses
    void (*compute_painn_norms)(int hidden, PainnMixed<Real> mixed, Real floor, Real* norms, Real* inverse_norms);
    // scalars[F] += a_ss + a_sv * dot
    void (*add_to_painn_scalars)(int hidden, PainnMixed<Real> mixed, const Real* gates, Real* scalars);
    // updated[3][F] = vectors + a_vv * (U v)
    void (*update_painn_vectors)(int hidden, PainnMixed<Real> mixed, const Real* gates,
                                 PainnComponents<const Real> vectors, Real* updated);
    // Computes gates_gradient from the gradients after the update. vectors_gradient [3][F] may be nullptr: zero; then
    // a_vv has no gradient.
    void (*reverse_painn_gates)(int hidden, PainnMixed<Real> mixed, const Real* scalars_gradient,
                                const Real* vectors_gradient, Real* gates_gradient);
    void (*reverse_painn_mixed)(int hidden, const PainnMixedGradient<Real>& rows);
    // What an atom sends with its vectors: phi_v v. The reverse pass gives the gradients of both; that of v is added.
    void (*weigh_painn_vectors)(int hidden, const Real* phi, const Real* vectors, Real* sent);
    void (*reverse_painn_weighing)(int hidden, const Real* phi, const Real* vectors, const Real* sent_gradient,
                                   Real* phi_gradient, Real* vectors_gradient);

    // values[k] = silu(values[k]), slopes[k] = silu'(values[k]), k < count, a multiple of kRowPadding
    void (*activate_silu)(Real* values, Real* slopes, int count);

    // DFT-D3: adds the pairs of an atom, its count of neighbours, or the forces by the gradients of counts.
    void (*sum_dispersion_pairs)(const DispersionPairs<Real>& pairs, DispersionSums<Real>& sums);
    void (*sum_dispersion_counts)(const DispersionCounts<Real>& counts, DispersionSums<Real>& sums);
    void (*reverse_dispersion_counts)(const DispersionCounts<Real>& counts, DispersionSums<Real>& sums);

    // Measures the processor's peak: runs `rounds` rounds of independent multiply-adds on registers. *result must be
    // zero on entry, and is 78 at the end. Returns the number of operations, two per multiply-add.
    double (*multiply_add)(int64_t rounds, Real* result);

    std::string_view name;  // "neon", "avx2", "avx512", "baseline"
};

// The best of `available_kernels` that computes the same as scalar code (kernel_check.h), or the one named by the
// environment variable MLFF_CPU. Throws Error{argument} if that one is not available, and Error{device} if it, or all
// of them, compute wrong numbers.
template <class Real>
const KernelTable<Real>& choose_kernels();

std::string kernel_names();  // those that this processor can run, best first

}  // namespace mlff::kernels
