// SPDX-License-Identifier: MIT
#include "cpu_kernels/scalar_kernels.h"

#include <array>
#include <cmath>

#include "cpu_kernels/spline_table.h"

namespace mlff::kernels {
namespace {

template <class Real>
double product(Real a, Real b) {
    return static_cast<double>(a) * static_cast<double>(b);
}
template <class Real>
void add(Real& sum, double term) {
    sum = static_cast<Real>(static_cast<double>(sum) + term);
}

// ---- dense products ----

template <class Real>
void multiply_rows(const Real* const* in, Real* const* out, int row_count, const Real* weight, int depth, int width,
                   bool accumulate) {
    for (int r = 0; r < row_count; ++r)
        for (int w = 0; w < width; ++w) {
            double sum = accumulate ? static_cast<double>(out[r][w]) : 0;
            for (int u = 0; u < depth; ++u)
                sum += product(
                    in[r][u],
                    weight[matrix_index(static_cast<size_t>(u), static_cast<size_t>(w), static_cast<size_t>(depth))]);
            out[r][w] = static_cast<Real>(sum);
        }
}

template <class Real>
void transpose(const Real* in, ptrdiff_t in_stride, int row_count, int column_count, Real* out, ptrdiff_t out_stride) {
    for (int row = 0; row < row_count; ++row)
        for (int column = 0; column < column_count; ++column)
            out[column * out_stride + row] = in[row * in_stride + column];
}

// ---- radial functions ----

template <class Real>
void find_points(const double* distances, const SplineGrid& grid, SplinePoints<Real>& points) {
    const SplineTableView<Real> view = {nullptr, 0, grid.interval_count, grid.low, grid.inverse_step, 0};
    for (int e = 0; e < kEdgesPerBatch; ++e) {
        const SplineShares<Real> shares = view.locate(distances[e]);
        points.interval[e] = static_cast<int32_t>(shares.interval);
        for (int t = 0; t < kSplineOrder; ++t) {
            points.value[t][e] = shares.value[t];
            points.slope[t][e] = shares.slope[t];
        }
    }
}

// One number of a row of a table [node][kSplineRows][width], from the interval's node on, and its slope.
struct Function {
    double value = 0, slope = 0;
};
template <class Real>
Function function_at(const Real* row, int width, const Real* value_shares, const Real* slope_shares,
                     int share_stride = 1) {
    Function function = {static_cast<double>(row[0]), 0};
    for (int t = 0; t < kSplineOrder; ++t) {
        const Real share_row = row[spline_row(t) * width];
        function.value += product(value_shares[t * share_stride], share_row);
        function.slope += product(slope_shares[t * share_stride], share_row);
    }
    return function;
}
template <class Real>
Function radial_at(const SplinePoints<Real>& points, int edge, int column, int width, int k) {
    return function_at(points.row(edge, column, width) + k, width, points.value[0] + edge, points.slope[0] + edge,
                       kEdgesPerBatch);
}

template <class Real>
void interpolate(const SplinePoints<Real>& points, int edge_count, const FunctionRows<Real>& out) {
    for (int e = 0; e < edge_count; ++e)
        for (int k = 0; k < out.width; ++k) {
            const ptrdiff_t at = e * out.edge_stride + k / kRowPadding * out.strip_stride + k % kRowPadding;
            const Function radial = radial_at(points, e, 0, out.width, k);
            out.values[at] = static_cast<Real>(radial.value);
            if (out.slopes) out.slopes[at] = static_cast<Real>(radial.slope);
        }
}

// ---- harmonics ----

#define MLFF_FORMULA inline
#include "equivariant/harmonics_formulas.inc"
#undef MLFF_FORMULA

template <class Real>
void compute_harmonics(int max_degree, const double* directions, Real* harmonics) {
    double values[kWrittenOutHarmonics];
    for (int e = 0; e < kEdgesPerBatch; ++e) {
        harmonics_formula(max_degree, directions[e], directions[kEdgesPerBatch + e], directions[2 * kEdgesPerBatch + e],
                          values);
        for (int h = 0; h < (max_degree + 1) * (max_degree + 1); ++h)
            harmonics[h * kEdgesPerBatch + e] = static_cast<Real>(values[h]);
    }
}

template <class Real>
void reverse_harmonics(int max_degree, const double* directions, const double* lengths, const Real* gradient,
                       double* by_vector) {
    double g[kWrittenOutHarmonics], by[3];
    for (int e = 0; e < kEdgesPerBatch; ++e) {
        for (int h = 0; h < (max_degree + 1) * (max_degree + 1); ++h)
            g[h] = static_cast<double>(gradient[h * kEdgesPerBatch + e]);
        reverse_harmonics_formula(max_degree, directions[e], directions[kEdgesPerBatch + e],
                                  directions[2 * kEdgesPerBatch + e], lengths[e], g, by);
        for (int i = 0; i < 3; ++i) by_vector[i * kEdgesPerBatch + e] = by[i];
    }
}

// ---- messages ----

template <class Real>
void add_scaled_rows(const RowShare<Real>* shares, int count, const Real* from, Real* to) {
    for (int i = 0; i < count; ++i)
        for (int e = 0; e < kEdgesPerBatch; ++e)
            add(to[shares[i].to * kEdgesPerBatch + e],
                product(shares[i].share, from[shares[i].from * kEdgesPerBatch + e]));
}

template <class Real>
void sum_messages(const MessageEdges<Real>& in, Real* const* sums) {
    for (int e = 0; e < in.edge_count; ++e)
        for (int k = 0; k < in.stride; ++k) {
            const double radial = radial_at(*in.points, e, in.column, in.stride, k).value;
            for (int c = 0; c < in.out_count; ++c) {
                double sum = 0;
                for (int a = 0; a < in.component_count; ++a)
                    sum += product(in.shares[(a * in.out_count + c) * kEdgesPerBatch + e],
                                   in.features[e][a * in.stride + k]);
                add(sums[e][c * in.stride + k], radial * sum);
            }
        }
}

template <class Real>
void reverse_messages(const MessageEdges<Real>& in, const MessageGradients<Real>& gradients) {
    for (int e = 0; e < in.edge_count; ++e) {
        for (int s = 0; s < in.component_count * in.out_count; ++s) gradients.shares[s * kEdgesPerBatch + e] = 0;
        for (int k = 0; k < in.stride; ++k) {
            const auto [radial, slope] = radial_at(*in.points, e, in.column, in.stride, k);
            double by_radial = 0;
            for (int a = 0; a < in.component_count; ++a) {
                const auto feature = static_cast<double>(in.features[e][a * in.stride + k]);
                double pulled = 0;
                for (int c = 0; c < in.out_count; ++c) {
                    const int share = (a * in.out_count + c) * kEdgesPerBatch + e;
                    const auto gradient = static_cast<double>(gradients.sums[e][c * in.stride + k]);
                    pulled += static_cast<double>(in.shares[share]) * gradient;
                    add(gradients.shares[share], radial * feature * gradient);
                }
                by_radial += feature * pulled;
                if (gradients.features) add(gradients.features[e][a * in.stride + k], radial * pulled);
            }
            add(gradients.slopes[e], slope * by_radial);
            if (gradients.radial) add(gradients.radial[e * gradients.radial_stride + k], by_radial);
        }
    }
}

// ---- symmetric contraction ----

// Visits the monomials of a polynomial: visit(row of the result, coefficient, factors, how many).
template <class Visit>
void for_each_monomial(const Polynomial& polynomial, const Visit& visit) {
    std::array<int, kPolynomialLevels + 1> rows{};
    const int32_t* leaf = polynomial.leaf_rows;
    int out_row = -1, coefficient = 0;
    for (const PolynomialStep* step = polynomial.steps; step < polynomial.steps + polynomial.step_count; ++step) {
        const auto level = static_cast<size_t>(step->level);
        if (level == 0)
            ++out_row;
        else
            rows[level - 1] = step->row;
        visit(out_row, coefficient++, rows.data(), step->level);
        for (int i = 0; i < step->leaf_count; ++i) {
            rows[level] = *leaf++;
            visit(out_row, coefficient++, rows.data(), step->level + 1);
        }
    }
}

// The product of all factors, or of all but one.
template <class Real>
double factors_product(const Real* in, int stride, const int* factors, int count, int left_out = -1) {
    double result = 1;
    for (int f = 0; f < count; ++f)
        if (f != left_out) result *= static_cast<double>(in[factors[f] * stride]);
    return result;
}

template <class Real>
void evaluate_polynomial(const Polynomial& polynomial, const PolynomialRows<Real>& rows, Real* out) {
    for (int atom = 0; atom < rows.atom_count; ++atom)
        for (int k = 0; k < kRowPadding; ++k) {
            const Real* in = rows.in + atom * rows.in_step + k;
            Real* to = out + atom * rows.out_step + k;
            for (int row = 0; row < polynomial.out_row_count; ++row) to[row * rows.stride] = 0;
            for_each_monomial(polynomial, [&](int out_row, int coefficient, const int* factors, int count) {
                add(to[out_row * rows.stride], static_cast<double>(rows.coefficients[coefficient * kRowPadding + k]) *
                                                   factors_product(in, rows.stride, factors, count));
            });
        }
}

template <class Real>
void reverse_polynomial(const Polynomial& polynomial, const PolynomialRows<Real>& rows, const Real* out_gradient,
                        Real* in_gradient) {
    for (int atom = 0; atom < rows.atom_count; ++atom)
        for (int k = 0; k < kRowPadding; ++k) {
            const Real* in = rows.in + atom * rows.in_step + k;
            for_each_monomial(polynomial, [&](int out_row, int coefficient, const int* factors, int count) {
                const double gradient = product(rows.coefficients[coefficient * kRowPadding + k],
                                                out_gradient[atom * rows.out_step + out_row * rows.stride + k]);
                for (int f = 0; f < count; ++f)
                    add(in_gradient[atom * rows.in_step + factors[f] * rows.stride + k],
                        gradient * factors_product(in, rows.stride, factors, count, f));
            });
        }
}

// ---- PaiNN ----

template <class Real>
void sum_painn_moments(const PainnMoments<Real>& in) {
    for (int64_t e = in.begin; e < in.end; ++e)
        for (int n = 0; n < in.stride; ++n) {
            const Real* row = in.table + (in.shares[e].interval - in.first_node) * kSplineRows * in.stride + n;
            const double value = function_at(row, in.stride, in.shares[e].value, in.shares[e].slope).value;
            const int64_t at = in.element_slot[in.sender[e]] * in.slot_stride * in.stride;
            add(in.scalars[at + n], value);
            for (int c = 0; c < 3; ++c)
                add(in.vectors[3 * at + c * in.stride + n], static_cast<double>(in.directions[3 * e + c]) * value);
        }
}

template <class Real>
void reverse_painn_moments(const PainnMoments<Real>& in, Real* edge_gradients) {
    for (int64_t e = in.begin; e < in.end; ++e) {
        double by_edge[4] = {};
        for (int n = 0; n < in.stride; ++n) {
            const Real* row = in.table + (in.shares[e].interval - in.first_node) * kSplineRows * in.stride + n;
            const Function function = function_at(row, in.stride, in.shares[e].value, in.shares[e].slope);
            const int64_t at = in.element_slot[in.sender[e]] * in.slot_stride * in.stride;
            by_edge[0] += function.slope * static_cast<double>(in.scalars[at + n]);
            for (int c = 0; c < 3; ++c) {
                const auto gradient = static_cast<double>(in.vectors[3 * at + c * in.stride + n]);
                by_edge[0] += function.slope * static_cast<double>(in.directions[3 * e + c]) * gradient;
                by_edge[c + 1] += function.value * gradient;
            }
        }
        for (int i = 0; i < 4; ++i) edge_gradients[4 * e + i] = static_cast<Real>(by_edge[i]);
    }
}

constexpr int kSenderRows = 5, kSumRows = 4;

template <class Real>
struct StripFilters {
    StripFilters(const PainnStrip<Real>& in, const PainnLink<Real>& link, int channel) {
        for (int f = 0; f < 3; ++f)
            of[f] = function_at(
                in.table + (link.interval - in.first_node) * kSplineRows * 3 * kRowPadding + f * kRowPadding + channel,
                3 * kRowPadding, link.factors + kLinkValue, link.factors + kLinkSlope);
    }
    Function of[3];  // for the scalars, the vectors, the direction
};

// Visits the messages that pass the links: visit(link, sender, receiver, sign of the link's direction).
// `begins_at_atom`: one-way messages are sent by the atom.
template <class Real, class Visit>
void for_each_message(const PainnStrip<Real>& in, bool begins_at_atom, const Visit& visit) {
    for (int64_t atom = in.begin; atom < in.end; ++atom)
        for (int32_t l = 0; l < in.counts[atom].all; ++l) {
            const PainnLink<Real>& link = in.links[in.first[atom] + l];
            const bool both_ways = l < in.counts[atom].both_ways;
            if (both_ways || !begins_at_atom) visit(link, link.atom, atom, 1.0);
            if (both_ways || begins_at_atom) visit(link, atom, link.atom, -1.0);
        }
}

template <class Real>
void sum_painn_messages(const PainnMessages<Real>& in) {
    for (int64_t i = in.begin * kSumRows * kRowPadding; i < in.end * kSumRows * kRowPadding; ++i) in.sums[i] = 0;
    for_each_message<Real>(in, false, [&](const PainnLink<Real>& link, int64_t sender, int64_t receiver, double sign) {
        for (int k = 0; k < kRowPadding; ++k) {
            const StripFilters<Real> filters(in, link, k);
            const Real* from = in.senders + sender * kSenderRows * kRowPadding + k;
            Real* to = in.sums + receiver * kSumRows * kRowPadding + k;
            add(to[0], filters.of[0].value * static_cast<double>(from[0]));
            for (int c = 0; c < 3; ++c)
                add(to[(c + 1) * kRowPadding],
                    filters.of[1].value * static_cast<double>(from[(c + 2) * kRowPadding]) +
                        filters.of[2].value * sign * product(link.factors[kLinkDirection + c], from[kRowPadding]));
        }
    });
}

template <class Real>
void reverse_painn_messages(const PainnReverse<Real>& in) {
    for (int64_t i = in.begin * kSenderRows * kRowPadding; i < in.end * kSenderRows * kRowPadding; ++i)
        in.senders_gradient[i] = 0;
    for (int64_t atom = in.begin; atom < in.end; ++atom)
        for (int32_t l = 0; l < in.counts[atom].all; ++l)
            for (int i = 0; i < 4; ++i) in.edge_gradients[4 * in.links[in.first[atom] + l].edge + i] = 0;
    for_each_message<Real>(in, true, [&](const PainnLink<Real>& link, int64_t sender, int64_t receiver, double sign) {
        Real* by_edge = in.edge_gradients + 4 * link.edge;
        for (int k = 0; k < kRowPadding; ++k) {
            const StripFilters<Real> filters(in, link, k);
            const Real *from = in.senders + sender * kSenderRows * kRowPadding + k,
                       *gradient = in.gradients + receiver * kSumRows * kRowPadding + k;
            Real* to = in.senders_gradient + sender * kSenderRows * kRowPadding + k;
            double along = 0, by_vectors = 0;
            for (int c = 0; c < 3; ++c) {
                const auto of_sum = static_cast<double>(gradient[(c + 1) * kRowPadding]);
                along += sign * static_cast<double>(link.factors[kLinkDirection + c]) * of_sum;
                by_vectors += static_cast<double>(from[(c + 2) * kRowPadding]) * of_sum;
                add(to[(c + 2) * kRowPadding], filters.of[1].value * of_sum);
                add(by_edge[c + 1], sign * filters.of[2].value * static_cast<double>(from[kRowPadding]) * of_sum);
            }
            add(to[0], filters.of[0].value * static_cast<double>(gradient[0]));
            add(to[kRowPadding], filters.of[2].value * along);
            add(by_edge[0], filters.of[0].slope * product(from[0], gradient[0]) + filters.of[1].slope * by_vectors +
                                filters.of[2].slope * static_cast<double>(from[kRowPadding]) * along);
        }
    });
}

#include "cpu_kernels/painn_rows.inc"

template <class Real>
void activate_silu(Real* values, Real* slopes, int count) {
    for (int k = 0; k < count; ++k) {
        const auto x = static_cast<double>(values[k]);
        const double sigmoid = 1 / (1 + std::exp(-x));
        values[k] = static_cast<Real>(x * sigmoid);
        slopes[k] = static_cast<Real>(sigmoid * (1 + x * (1 - sigmoid)));
    }
}

// ---- dispersion ----

// visit(atom, vector to it, square of its distance), for those within the cutoff and for the atom itself
template <class Real, class Visit>
void for_each_neighbor(const DispersionNeighbors<Real>& in, const Visit& visit) {
    for (int run = 0; run < in.run_count; ++run)
        for (int32_t atom = in.runs[2 * run]; atom < in.runs[2 * run + 1]; ++atom) {
            const std::array<double, 3> to = {static_cast<double>(in.x[atom] - in.center[0]),
                                              static_cast<double>(in.y[atom] - in.center[1]),
                                              static_cast<double>(in.z[atom] - in.center[2])};
            const double square = to[0] * to[0] + to[1] * to[1] + to[2] * to[2];
            if (square < static_cast<double>(in.cutoff_square)) visit(atom, to, square);
        }
}
template <class Real>
void add_pull(const std::array<double, 3>& to, double pull, DispersionSums<Real>& sums) {
    constexpr size_t kRow[6] = {0, 1, 2, 1, 0, 0}, kColumn[6] = {0, 1, 2, 2, 2, 1};
    for (size_t k = 0; k < 3; ++k) add(sums.force[k], pull * to[k]);
    for (size_t k = 0; k < 6; ++k) add(sums.virial[k], pull * to[kRow[k]] * to[kColumn[k]]);
}

struct DampedPair {
    double energy = 0, pull = 0;
};
template <class Real>
DampedPair damped_pair(const DispersionPairs<Real>& in, double square) {
    const double r = std::sqrt(square), six = static_cast<double>(in.six), eight = static_cast<double>(in.eight);
    const auto six_radius = static_cast<double>(in.six_radius), eight_radius = static_cast<double>(in.eight_radius);
    double energy = 0, slope = 0;
    const auto add_term = [&](double strength, int power, double radius) {
        if (in.half_exponent == 0) {
            const double sum = std::pow(r, power) + radius;
            energy -= strength / sum;
            slope += strength * power * std::pow(r, power - 1) / (sum * sum);
        } else {
            const int exponent = 2 * in.half_exponent + power - 6;
            const double term = 6 * std::pow(radius / square, exponent / 2), damped = 1 / (1 + term);
            energy -= strength * damped * std::pow(r, -power);
            slope += strength * damped * std::pow(r, -power - 1) * (power - exponent * term * damped);
        }
    };
    add_term(six, 6, six_radius);
    add_term(eight, 8, eight_radius);
    const auto begin = static_cast<double>(in.fade_begin), end = static_cast<double>(in.fade_end);
    if (begin < end && r > begin) {
        const double t = (end - r) / (end - begin), fade = t * t * t * (10 + t * (6 * t - 15));
        slope = slope * fade - energy * 30 * t * t * (1 - t) * (1 - t) / (end - begin);
        energy *= fade;
    }
    return {energy, slope / r};
}

template <class Real>
void sum_dispersion_pairs(const DispersionPairs<Real>& in, DispersionSums<Real>& sums) {
    for_each_neighbor(in, [&](int32_t atom, const std::array<double, 3>& to, double square) {
        if (!(square > static_cast<double>(in.least_square))) return;
        double c6 = 0, slope = 0;
        for (int q = 0; q < in.reference_count; ++q) {
            const Real weight = in.weights[q * in.weight_stride + atom];
            c6 += product(in.shares[q], weight);
            slope += product(in.share_slopes[q], weight);
        }
        const DampedPair pair = damped_pair(in, square);
        add(sums.energy, c6 * pair.energy);
        add(sums.by_count, slope * pair.energy);
        add_pull(to, c6 * pair.pull, sums);
    });
}

template <class Real>
void sum_dispersion_counts(const DispersionCounts<Real>& in, DispersionSums<Real>& sums) {
    for_each_neighbor(in, [&](int32_t, const std::array<double, 3>&, double square) {
        if (!(square > static_cast<double>(in.least_square)))
            add(sums.self, 1);
        else
            add(sums.count, 1 / (1 + std::exp(16 - 16 * static_cast<double>(in.reach) / std::sqrt(square))));
    });
}
template <class Real>
void reverse_dispersion_counts(const DispersionCounts<Real>& in, DispersionSums<Real>& sums) {
    for_each_neighbor(in, [&](int32_t atom, const std::array<double, 3>& to, double square) {
        if (!(square > static_cast<double>(in.least_square))) return;
        const double r = std::sqrt(square), reach = static_cast<double>(in.reach),
                     decay = std::exp(16 - 16 * reach / r),
                     slope = -16 * reach / square * decay / ((1 + decay) * (1 + decay));
        add_pull(to, static_cast<double>(in.gradient[atom] + in.own_gradient) * slope / r, sums);
    });
}

template <class Real>
double multiply_add(int64_t rounds, Real* result) {
    *result = 78;
    return 2.0 * 12 * static_cast<double>(rounds);
}

}  // namespace

template <class Real>
KernelTable<Real> scalar_kernels() {
    return {.multiply_rows = multiply_rows<Real>,
            .transpose = transpose<Real>,
            .find_points = find_points<Real>,
            .interpolate = interpolate<Real>,
            .compute_harmonics = compute_harmonics<Real>,
            .reverse_harmonics = reverse_harmonics<Real>,
            .add_scaled_rows = add_scaled_rows<Real>,
            .sum_messages = sum_messages<Real>,
            .reverse_messages = reverse_messages<Real>,
            .evaluate_polynomial = evaluate_polynomial<Real>,
            .reverse_polynomial = reverse_polynomial<Real>,
            .sum_painn_moments = sum_painn_moments<Real>,
            .reverse_painn_moments = reverse_painn_moments<Real>,
            .sum_painn_messages = sum_painn_messages<Real>,
            .reverse_painn_messages = reverse_painn_messages<Real>,
            .compute_painn_norms = compute_painn_norms<Real>,
            .add_to_painn_scalars = add_to_painn_scalars<Real>,
            .update_painn_vectors = update_painn_vectors<Real>,
            .reverse_painn_gates = reverse_painn_gates<Real>,
            .reverse_painn_mixed = reverse_painn_mixed<Real>,
            .weigh_painn_vectors = weigh_painn_vectors<Real>,
            .reverse_painn_weighing = reverse_painn_weighing<Real>,
            .activate_silu = activate_silu<Real>,
            .sum_dispersion_pairs = sum_dispersion_pairs<Real>,
            .sum_dispersion_counts = sum_dispersion_counts<Real>,
            .reverse_dispersion_counts = reverse_dispersion_counts<Real>,
            .multiply_add = multiply_add<Real>,
            .name = "scalar"};
}
template KernelTable<float> scalar_kernels();
template KernelTable<double> scalar_kernels();

}  // namespace mlff::kernels
