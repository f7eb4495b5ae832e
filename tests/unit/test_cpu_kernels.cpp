// SPDX-License-Identifier: MIT
// The kernels of every instruction set that this processor has, against plain scalar code; and whether a wrong one
// would be found.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <utility>

#include "../sanitized.h"
#include "capture_binding.h"
#include "cpu_kernels/available_kernels.h"
#include "cpu_kernels/kernel_check.h"
#include "cpu_kernels/scalar_kernels.h"

using namespace mlff::kernels;

namespace {

template <class Real>
void check_tables(int seeds) {
    for (const KernelTable<Real>& table : available_kernels<Real>()) {
        MESSAGE("kernels for " << table.name << " in " << (sizeof(Real) == 4 ? "single" : "double") << " precision");
        for (int seed = 0; seed < seeds; ++seed)
            for (const KernelFault& fault : find_kernel_faults(table, static_cast<uint64_t>(seed), seed == 0)) {
                CAPTURE(table.name);
                CAPTURE(seed);
                CAPTURE(fault.kernel);
                CHECK(fault.deviation <= kKernelTolerance<Real>);
            }
    }
}

// The right kernels, which the wrong ones call first.
template <class Real>
KernelTable<Real>& right() {
    static KernelTable<Real> table = available_kernels<Real>().front();
    return table;
}

// Tables in which one kernel each is wrong, by its name: one number of its result is off by a little, or is not a
// number.
template <class Real>
std::vector<std::pair<std::string, KernelTable<Real>>> wrong_tables() {
    std::vector<std::pair<std::string, KernelTable<Real>>> tables;
    const auto add = [&](const char* name, const auto& damage) {
        KernelTable<Real> table = right<Real>();
        damage(table);
        tables.emplace_back(name, table);
    };
    constexpr Real kLittle = sizeof(Real) == 4 ? Real(1.001) : Real(1.000000001);
    add("multiply_rows", [](KernelTable<Real>& t) {
        t.multiply_rows = [](const Real* const* in, Real* const* out, int rows, const Real* weight, int depth,
                             int width, bool accumulate) {
            right<Real>().multiply_rows(in, out, rows, weight, depth, width, accumulate);
            out[rows - 1][width - 1] = std::numeric_limits<Real>::quiet_NaN();
        };
    });
    add("transpose", [](KernelTable<Real>& t) {
        t.transpose = [](const Real* in, ptrdiff_t in_stride, int rows, int columns, Real* out, ptrdiff_t out_stride) {
            right<Real>().transpose(in, in_stride, rows, columns, out, out_stride);
            std::swap(out[0], out[1]);
        };
    });
    add("find_points", [](KernelTable<Real>& t) {
        t.find_points = [](const double* distances, const SplineGrid& grid, SplinePoints<Real>& points) {
            right<Real>().find_points(distances, grid, points);
            points.slope[kSplineOrder - 1][kEdgesPerBatch - 1] += Real(1);
        };
    });
    add("interpolate", [](KernelTable<Real>& t) {
        t.interpolate = [](const SplinePoints<Real>& points, int edge_count, const FunctionRows<Real>& out) {
            right<Real>().interpolate(points, edge_count, out);
            if (out.slopes) out.slopes[0] += Real(0.1);
        };
    });
    add("compute_harmonics", [](KernelTable<Real>& t) {
        t.compute_harmonics = [](int max_degree, const double* directions, Real* harmonics) {
            right<Real>().compute_harmonics(max_degree, directions, harmonics);
            harmonics[kEdgesPerBatch - 1] *= kLittle;
        };
    });
    add("reverse_harmonics", [](KernelTable<Real>& t) {
        t.reverse_harmonics = [](int max_degree, const double* directions, const double* lengths, const Real* gradient,
                                 double* by_vector) {
            right<Real>().reverse_harmonics(max_degree, directions, lengths, gradient, by_vector);
            for (int i = 0; i < 3 * kEdgesPerBatch; ++i) by_vector[i] *= static_cast<double>(kLittle);
        };
    });
    add("add_scaled_rows", [](KernelTable<Real>& t) {
        t.add_scaled_rows = [](const RowShare<Real>* shares, int count, const Real* from, Real* to) {
            right<Real>().add_scaled_rows(shares, count - 1, from, to);
        };
    });
    // What g++ 12 did: the upper lanes of registers are lost.
    add("sum_messages", [](KernelTable<Real>& t) {
        t.sum_messages = [](const MessageEdges<Real>& edges, Real* const* sums) {
            right<Real>().sum_messages(edges, sums);
            for (int k = 2; k < kRowPadding; ++k) sums[0][k] = 0;
        };
    });
    add("reverse_messages", [](KernelTable<Real>& t) {
        t.reverse_messages = [](const MessageEdges<Real>& edges, const MessageGradients<Real>& gradients) {
            right<Real>().reverse_messages(edges, gradients);
            if (edges.component_count == 3 && edges.out_count == 5) gradients.shares[(14 * kEdgesPerBatch)] *= kLittle;
        };
    });
    add("evaluate_polynomial", [](KernelTable<Real>& t) {
        t.evaluate_polynomial = [](const Polynomial& polynomial, const PolynomialRows<Real>& rows, Real* out) {
            right<Real>().evaluate_polynomial(polynomial, rows, out);
            for (int k = kRowPadding / 2; k < kRowPadding; ++k) out[(rows.atom_count - 1) * rows.out_step + k] = 0;
        };
    });
    add("reverse_polynomial", [](KernelTable<Real>& t) {
        t.reverse_polynomial = [](const Polynomial& polynomial, const PolynomialRows<Real>& rows,
                                  const Real* out_gradient, Real* in_gradient) {
            right<Real>().reverse_polynomial(polynomial, rows, out_gradient, in_gradient);
            right<Real>().reverse_polynomial(polynomial, rows, out_gradient, in_gradient);
        };
    });
    add("sum_painn_moments", [](KernelTable<Real>& t) {
        t.sum_painn_moments = [](const PainnMoments<Real>& moments) {
            PainnMoments<Real> fewer = moments;
            --fewer.end;
            right<Real>().sum_painn_moments(fewer);
        };
    });
    add("reverse_painn_moments", [](KernelTable<Real>& t) {
        t.reverse_painn_moments = [](const PainnMoments<Real>& gradients, Real* edge_gradients) {
            right<Real>().reverse_painn_moments(gradients, edge_gradients);
            edge_gradients[4 * (gradients.end - 1) + 3] = 0;
        };
    });
    add("sum_painn_messages", [](KernelTable<Real>& t) {
        t.sum_painn_messages = [](const PainnMessages<Real>& messages) {
            right<Real>().sum_painn_messages(messages);
            messages.sums[4 * kRowPadding - 1] *= Real(1.1);
        };
    });
    add("reverse_painn_messages", [](KernelTable<Real>& t) {
        t.reverse_painn_messages = [](const PainnReverse<Real>& messages) {
            right<Real>().reverse_painn_messages(messages);
            messages.senders_gradient[kRowPadding - 1] += Real(1);
        };
    });
    add("compute_painn_norms", [](KernelTable<Real>& t) {
        t.compute_painn_norms = [](int hidden, PainnMixed<Real> mixed, Real floor, Real* norms, Real* inverse_norms) {
            right<Real>().compute_painn_norms(hidden, mixed, floor, norms, inverse_norms);
            inverse_norms[hidden - 1] *= kLittle;
        };
    });
    add("add_to_painn_scalars", [](KernelTable<Real>& t) {
        t.add_to_painn_scalars = [](int hidden, PainnMixed<Real> mixed, const Real* gates, Real* scalars) {
            right<Real>().add_to_painn_scalars(hidden - kRowPadding, mixed, gates, scalars);
        };
    });
    add("update_painn_vectors", [](KernelTable<Real>& t) {
        t.update_painn_vectors = [](int hidden, PainnMixed<Real> mixed, const Real* gates,
                                    PainnComponents<const Real> vectors, Real* updated) {
            right<Real>().update_painn_vectors(hidden, mixed, gates, vectors, updated);
            updated[2 * hidden] = 0;
        };
    });
    add("reverse_painn_gates", [](KernelTable<Real>& t) {
        t.reverse_painn_gates = [](int hidden, PainnMixed<Real> mixed, const Real* scalars_gradient, const Real*,
                                   Real* gates_gradient) {
            right<Real>().reverse_painn_gates(hidden, mixed, scalars_gradient, nullptr, gates_gradient);
        };
    });
    add("reverse_painn_mixed", [](KernelTable<Real>& t) {
        t.reverse_painn_mixed = [](int hidden, const PainnMixedGradient<Real>& rows) {
            right<Real>().reverse_painn_mixed(hidden, rows);
            rows.mixed_gradient[2][hidden - 1] += Real(0.1);
        };
    });
    add("weigh_painn_vectors", [](KernelTable<Real>& t) {
        t.weigh_painn_vectors = [](int hidden, const Real* phi, const Real* vectors, Real* sent) {
            right<Real>().weigh_painn_vectors(hidden, phi, vectors, sent);
            std::swap(sent[0], sent[1]);
        };
    });
    add("reverse_painn_weighing", [](KernelTable<Real>& t) {
        t.reverse_painn_weighing = [](int hidden, const Real* phi, const Real* vectors, const Real* sent_gradient,
                                      Real* phi_gradient, Real* vectors_gradient) {
            right<Real>().reverse_painn_weighing(hidden, phi, vectors, sent_gradient, phi_gradient, vectors_gradient);
            std::fill_n(vectors_gradient, hidden, Real(0));
        };
    });
    add("activate_silu", [](KernelTable<Real>& t) {
        t.activate_silu = [](Real* values, Real* slopes, int count) {
            right<Real>().activate_silu(values, slopes, count);
            slopes[count - 1] += Real(0.001);
        };
    });
    add("sum_dispersion_pairs", [](KernelTable<Real>& t) {
        t.sum_dispersion_pairs = [](const DispersionPairs<Real>& pairs, DispersionSums<Real>& sums) {
            right<Real>().sum_dispersion_pairs(pairs, sums);
            sums.by_count = 0;
        };
    });
    add("sum_dispersion_counts", [](KernelTable<Real>& t) {
        t.sum_dispersion_counts = [](const DispersionCounts<Real>& counts, DispersionSums<Real>& sums) {
            right<Real>().sum_dispersion_counts(counts, sums);
            sums.self = 0;
        };
    });
    add("reverse_dispersion_counts", [](KernelTable<Real>& t) {
        t.reverse_dispersion_counts = [](const DispersionCounts<Real>& counts, DispersionSums<Real>& sums) {
            right<Real>().reverse_dispersion_counts(counts, sums);
            std::swap(sums.virial[4], sums.virial[5]);
        };
    });
    add("multiply_add", [](KernelTable<Real>& t) {
        t.multiply_add = [](int64_t rounds, Real* result) {
            const double operations = right<Real>().multiply_add(rounds, result);
            *result = 77;
            return operations;
        };
    });
    return tables;
}

template <class Real>
void check_wrong_tables() {
    const auto tables = wrong_tables<Real>();
    // As many as the table has functions: none may go unchecked.
    CHECK(tables.size() == (sizeof(KernelTable<Real>) - sizeof(std::string_view)) / sizeof(void (*)()));
    for (const auto& [name, table] : tables)
        for (const bool is_small : {true, false}) {
            CAPTURE_BINDING(name);
            CAPTURE(is_small);
            std::set<std::string> found;
            for (uint64_t seed = 2026; seed < (is_small ? 2027 : 2032); ++seed)
                for (const KernelFault& fault : find_kernel_faults(table, seed, is_small)) found.emplace(fault.kernel);
            CHECK(found == std::set<std::string>{name});
        }
}

}  // namespace

TEST_CASE("kernels of every instruction set compute what scalar code does, whatever the sizes and strides") {
    const int seeds = mlff::test::kIsSanitized ? 10 : 150;
    check_tables<float>(seeds);
    check_tables<double>(seeds);
    CHECK(available_kernels<float>().back().name == baseline_kernels<float>().name);
}

TEST_CASE("each kernel that is wrong is found, and no other") {
    check_wrong_tables<float>();
    check_wrong_tables<double>();
}
