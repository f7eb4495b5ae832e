// SPDX-License-Identifier: MIT
// The contraction of the GPU backend, walked on the CPU by the code of its kernels: against the CPU backend.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "close.h"
#include "mace/gpu/contraction_pattern.h"
#include "mace/gpu/monomials.h"
#include "mace/plan/contraction.h"
#include "test_mace_numerics.h"
#include "test_mace_support.h"

using namespace mace_test;
using namespace mlff;
using namespace mlff::mace;
using namespace mlff::mace::gpu;

namespace {

// Each out row has all kinds of terms: of every order, repeated rows, none at all.
SymmetricContraction random_contraction(int correlation, int in_rows, int out_rows, int channels, int terms_per_row,
                                        Random& random) {
    SymmetricContraction contraction;
    contraction.channel_count = channels;
    contraction.in_row_count = in_rows;
    contraction.out_row_count = out_rows;
    contraction.path_count = 3;
    contraction.weights = random.numbers(static_cast<size_t>(3 * channels));
    const auto below = [&](int end) { return std::min(end - 1, static_cast<int>((random.number() + 1) / 2 * end)); };
    contraction.first_term.push_back(0);
    for (int out = 0; out < out_rows; ++out) {
        for (int t = 0; out != 1 && t < terms_per_row; ++t) {
            SymmetricContraction::Term term;
            term.path = below(3);
            term.order = 1 + below(correlation);
            for (int k = 0; k < term.order; ++k) term.rows[static_cast<size_t>(k)] = below(in_rows);
            std::sort(term.rows.begin(), term.rows.begin() + term.order);
            term.coefficient = random.number();
            contraction.terms.push_back(term);
        }
        contraction.first_term.push_back(static_cast<int>(contraction.terms.size()));
    }
    return contraction;
}

// What a block of the GPU does for atoms of one element, its lanes and warps one after the other.
template <class Real, int Atoms, int Depth, int AtOnce>
struct Block {
    const plan::Contraction<Real>& contraction;
    const MonomialList list{contraction.polynomial()};
    const std::vector<Monomial> monomials = list.of_element(contraction.coefficients(0), contraction.stride());
    const mlff::Buffer<Real> coefficients = list.pack(contraction.coefficients(0), contraction.stride());
    const int in_rows = contraction.polynomial().in_row_count, out_rows = contraction.polynomial().out_row_count,
              stride = contraction.stride();
    const int groups = static_cast<int>(list.paths.size()) - 1;
    using Rows = LaneRows<Real, Atoms>;

    static Rows lane_of(std::vector<Real>& memory, int first_row, int lane) {
        return Rows(memory.data() + first_row * Rows::kRowSize, lane);
    }
    static std::vector<Real> memory(int rows) {
        return std::vector<Real>(static_cast<size_t>(rows * Rows::kRowSize), Real(0));
    }
    size_t at(int rows, int atom, int row, int channel) const {
        return static_cast<size_t>((atom * rows + row) * stride + channel);
    }
    const Real* coefficients_at(int strip, int lane) const {
        return coefficients.data() + static_cast<ptrdiff_t>(strip * list.count) * kLanes + lane;
    }

    AtomValues<Real, Atoms> load(const std::vector<Real>& from, int rows, int row, int channel) const {
        AtomValues<Real, Atoms> values;
        for (int a = 0; a < Atoms; ++a) values.of[a] = channel < stride ? from[at(rows, a, row, channel)] : Real(0);
        return values;
    }
    void store(const AtomValues<Real, Atoms>& values, std::vector<Real>& to, int rows, int row, int channel) const {
        for (int a = 0; a < Atoms; ++a)
            if (channel < stride) to[at(rows, a, row, channel)] = values.of[a];
    }

    std::vector<Real> apply(const std::vector<Real>& in, int walkers) const {
        std::vector<Real> out(static_cast<size_t>(Atoms * out_rows * stride));
        for (int channel = 0; channel < padded_stride(); ++channel) {
            const int strip = channel / kLanes, lane = channel % kLanes;
            std::vector<Real> in_memory = memory(in_rows), sums = memory(out_rows + walkers - 1);
            std::fill(sums.begin(), sums.end(), std::nan(""));  // nothing is read that was not written
            for (int row = 0; row < in_rows; ++row)
                lane_of(in_memory, 0, lane).store(row, load(in, in_rows, row, channel));
            for (int walker = walkers - 1; walker >= 0; --walker) {
                const MonomialStretch stretch = stretch_of(walker, walkers, groups);
                using Walk = ForwardWalk<Real, Atoms, Depth>;
                Walk walk(list.paths[static_cast<size_t>(stretch.begin / kMonomialsAtOnce)],
                          lane_of(in_memory, 0, lane), lane_of(sums, 0, lane), walker);
                MonomialReader<AtOnce, Real, Walk>(monomials.data(), coefficients_at(strip, lane)).read(stretch, walk);
                walk.finish();
            }
            for (int row = 0; row < out_rows; ++row)
                store(joined_sum(list.paths.data(), groups, walkers, row, lane_of(sums, 0, lane)), out, out_rows, row,
                      channel);
        }
        return out;
    }

    std::vector<Real> reverse(const std::vector<Real>& in, const std::vector<Real>& out_gradient, int walkers) const {
        std::vector<Real> in_gradient(in.size());
        for (int channel = 0; channel < padded_stride(); ++channel) {
            const int strip = channel / kLanes, lane = channel % kLanes;
            std::vector<Real> in_memory = memory(in_rows), out_memory = memory(out_rows),
                              gradients = memory(walkers * in_rows);
            for (int row = 0; row < in_rows; ++row)
                lane_of(in_memory, 0, lane).store(row, load(in, in_rows, row, channel));
            for (int row = 0; row < out_rows; ++row)
                lane_of(out_memory, 0, lane).store(row, load(out_gradient, out_rows, row, channel));
            for (int walker = 0; walker < walkers; ++walker) {
                const MonomialStretch stretch = stretch_of(walker, walkers, groups);
                using Walk = ReverseWalk<Real, Atoms, Depth>;
                Walk walk(list.paths[static_cast<size_t>(stretch.begin / kMonomialsAtOnce)],
                          lane_of(in_memory, 0, lane), lane_of(out_memory, 0, lane),
                          lane_of(gradients, walker * in_rows, lane));
                MonomialReader<AtOnce, Real, Walk>(monomials.data(), coefficients_at(strip, lane)).read(stretch, walk);
                walk.finish();
            }
            for (int row = 0; row < in_rows; ++row) {
                AtomValues<Real, Atoms> sum;
                sum.set(0);
                for (int walker = 0; walker < walkers; ++walker)
                    sum.add_product(lane_of(gradients, walker * in_rows, lane).load(row), Real(1));
                store(sum, in_gradient, in_rows, row, channel);
            }
        }
        return in_gradient;
    }

    int padded_stride() const { return (stride + kLanes - 1) / kLanes * kLanes; }
};

template <class Real>
void check_close(const std::vector<Real>& found, const std::vector<Real>& expected, double tolerance) {
    double size = 1;
    for (Real x : expected) size = std::max(size, std::abs(static_cast<double>(x)));
    const std::vector<double> found_numbers(found.begin(), found.end()),
        expected_numbers(expected.begin(), expected.end());
    CHECK_ALL_CLOSE(found_numbers, expected_numbers, tolerance * size);
}

template <class Real>
mlff::Buffer<Real> aligned(const std::vector<Real>& values) {
    mlff::Buffer<Real> copy;
    copy.resize_discard(values.size());
    std::copy(values.begin(), values.end(), copy.begin());
    return copy;
}

template <class Real, int Atoms, int Depth, int AtOnce>
void check_walks(const SymmetricContraction& contraction, Random& random) {
    const double tolerance = sizeof(Real) == 4 ? 1e-5 : 1e-13;
    plan::Contraction<Real> host(contraction);
    host.prepare(0);
    const auto random_rows = [&](int rows) {
        std::vector<Real> values;
        for (double x : random.numbers(static_cast<size_t>(Atoms * rows * host.stride())))
            values.push_back(static_cast<Real>(x));
        return values;
    };
    const std::vector<Real> in = random_rows(contraction.in_row_count),
                            out_gradient = random_rows(contraction.out_row_count);
    // Kernels of the CPU want rows that are aligned, which those of a vector need not be.
    mlff::Buffer<Real> host_in = aligned(in), host_out_gradient = aligned(out_gradient),
                       host_out = aligned(out_gradient), host_in_gradient = aligned(in), work;
    host.apply(plan::choose_kernels<Real>(), 0, host_in.data(), host_out.data(), Atoms, work);
    host.reverse(plan::choose_kernels<Real>(), 0, host_in.data(), host_out_gradient.data(), host_in_gradient.data(),
                 Atoms, work);
    const std::vector<Real> out(host_out.begin(), host_out.end()),
        in_gradient(host_in_gradient.begin(), host_in_gradient.end());
    const Block<Real, Atoms, Depth, AtOnce> block{host};
    for (int walkers : {1, 2, 3, 4, 8, 16}) {
        CAPTURE(walkers);
        check_close(block.apply(in, walkers), out, tolerance);
        check_close(block.reverse(in, out_gradient, walkers), in_gradient, tolerance);
    }
}

}  // namespace

TEST_CASE("mace monomials: every factor and coefficient of the polynomial once, in preorder, shared out without gaps") {
    Random random;
    for (int correlation = 1; correlation <= kMaxCorrelation; ++correlation) {
        const SymmetricContraction contraction = random_contraction(correlation, 7, 4, 5, 40, random);
        plan::Contraction<double> host(contraction);
        host.prepare(0);
        const MonomialList list(host.polynomial());
        CHECK(list.depth <= correlation);
        const std::vector<Monomial> monomials = list.of_element(host.coefficients(0), host.stride());

        std::set<std::vector<int>> expected, found;  // out row, then factors
        for (int out = 0; out < 4; ++out)
            for (int t = contraction.first_term[static_cast<size_t>(out)];
                 t < contraction.first_term[static_cast<size_t>(out) + 1]; ++t) {
                const auto& term = contraction.terms[static_cast<size_t>(t)];
                std::vector<int> key = {out};
                key.insert(key.end(), term.rows.begin(), term.rows.begin() + term.order);
                expected.insert(key);
            }
        std::vector<int> path = {-1};
        for (int i = 0; i < list.count; ++i) {
            const Monomial& monomial = monomials[static_cast<size_t>(i)];
            REQUIRE(monomial.level() <= static_cast<int>(path.size()));
            if (i % kMonomialsAtOnce == 0) {
                const MonomialPath& start = list.paths[static_cast<size_t>(i / kMonomialsAtOnce)];
                CHECK(start.out_row == path[0]);
                for (int level = 1; level < monomial.level(); ++level)
                    CHECK(start.rows[level - 1] == path[static_cast<size_t>(level)]);
            }
            path.resize(static_cast<size_t>(std::max(monomial.level(), 1)));
            if (monomial.level() == 0)
                ++path[0];
            else
                path.push_back(monomial.row());
            if (monomial.has_coefficient()) CHECK(found.insert(path).second);
        }
        CHECK(list.paths.back().out_row == 3);
        CHECK(found == expected);
        for (size_t i = static_cast<size_t>(list.count); i < monomials.size(); ++i)
            CHECK_FALSE(monomials[i].has_coefficient());

        const int groups = static_cast<int>(list.paths.size()) - 1;
        CHECK(groups * kMonomialsAtOnce >= list.count);
        for (int walkers : {1, 3, 16}) {
            int end = 0;
            for (int walker = 0; walker < walkers; ++walker) {
                CHECK(stretch_of(walker, walkers, groups).begin == end);
                end = stretch_of(walker, walkers, groups).end;
            }
            CHECK(end == groups * kMonomialsAtOnce);
        }
    }
}

TEST_CASE("mace monomials: values and gradients of the CPU backend, however many walkers") {
    Random random;
    for (const int terms : {1, 6, 150}) {
        CAPTURE(terms);
        for (int correlation = 1; correlation <= 3; ++correlation) {
            CAPTURE(correlation);
            const SymmetricContraction contraction =
                random_contraction(correlation, 9, 5, 40, terms, random);  // the last lanes are idle
            check_walks<float, 1, 3, 8>(contraction, random);
            check_walks<float, 8, 3, 4>(contraction, random);
            check_walks<double, 4, 3, 4>(contraction, random);
        }
        const SymmetricContraction contraction = random_contraction(4, 6, 2, 16, terms, random);
        check_walks<float, 4, 4, 4>(contraction, random);
        check_walks<double, 1, 4, 8>(contraction, random);
        check_walks<double, 2, 4, 4>(contraction, random);
    }
}

TEST_CASE(
    "mace monomials: models with harmonics up to degree 3 are in the pattern of the kernels, with values of the CPU") {
    int compared = 0;
    for (const char* name : {"p02_mp0like_l1_c3_f32", "p09_l2_ell3", "p03_mace_plain_l1"}) {
        CAPTURE(name);
        const mace_test::Model model(golden_model(name));
        for (const Layer& layer : model.weights->layers) {
            plan::Contraction<double> host(layer.contraction);
            host.prepare(0);
            const plan::Polynomial polynomial = host.polynomial();
            const MonomialList list(polynomial);
            const std::vector<int32_t> pattern = list.in_pattern(polynomial);
            const bool is_like_mp0 = layer.contraction.in_row_count == kPatternRows && list.depth == kPatternLevels;
            CHECK(pattern.empty() == !is_like_mp0);
            if (pattern.empty()) continue;
            CHECK(static_cast<int>(pattern.size()) == 4 * first_pattern_group(polynomial.out_row_count));
            const mlff::Buffer<double> packed = list.pack(host.coefficients(0), host.stride(), pattern);

            Random random;
            const int stride = host.stride();
            mlff::Buffer<double> in = aligned(random.numbers(static_cast<size_t>(host.in_size()))), out, work;
            out.resize_discard(static_cast<size_t>(host.out_size()));
            host.apply(plan::choose_kernels<double>(), 0, in.data(), out.data(), 1, work);
            std::vector<double> found;
            for (int row = 0; row < polynomial.out_row_count; ++row)
                for (int channel = 0; channel < stride; ++channel) {
                    const RowPattern monomials = list_row_pattern(row);
                    double sum = 0;
                    for (int i = 0; i < monomials.count; ++i) {
                        const size_t groups = pattern.size() / 4, strip = static_cast<size_t>(channel / kLanes),
                                     group = static_cast<size_t>(first_pattern_group(row) + i / 4);
                        double product =
                            packed[((strip * groups + group) * kLanes + static_cast<size_t>(channel % kLanes)) * 4 +
                                   static_cast<size_t>(i % 4)];
                        for (int level = 0; level < monomials.of[i].level; ++level)
                            product *= in[static_cast<size_t>(monomials.of[i].rows[level] * stride + channel)];
                        sum += product;
                    }
                    found.push_back(sum);
                }
            check_close(found, std::vector<double>(out.begin(), out.end()), 1e-12);
            ++compared;
        }
    }
    CHECK(compared == 2);
}
