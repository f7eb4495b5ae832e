// SPDX-License-Identifier: MIT
// Irreps, coupling coefficients and harmonics: against what the files store, explicit formulas and rotations.
#include <doctest/doctest.h>

#include <array>
#include <functional>

#include "core/error.h"
#include "equivariant/gpu/path_couplings.h"
#include "equivariant/irreps.h"
#include "equivariant/spherical_harmonics.h"
#include "equivariant/wigner.h"
#include "test_mace_numerics.h"
#include "test_mace_support.h"

using namespace mace_test;
using namespace mlff;

TEST_CASE("mace irreps: text, offsets, layout") {
    const Irreps irreps = Irreps::parse("8x0e + 4x1o+1x2e+2x2e");
    REQUIRE(irreps.block_count() == 4);
    CHECK(irreps.dimension() == 8 + 12 + 5 + 10);
    CHECK(irreps[1].offset == 8);
    CHECK(irreps[1].irrep == Irrep{1, -1});
    CHECK(irreps[3].offset == 25);
    CHECK(irreps.copies_of({2, 1}) == 3);
    CHECK(irreps.text() == "8x0e+4x1o+1x2e+2x2e");
    CHECK(irreps.same_layout(Irreps::parse("8x0e+4x1o+3x2e")));
    CHECK_FALSE(irreps.same_layout(Irreps::parse("8x0e+4x1e+3x2e")));
    CHECK(Irreps::parse("").dimension() == 0);
    CHECK(Irreps::parse("0e").dimension() == 1);
    for (const char* bad :
         {"8x0", "x0e", "8x0e+", "8y0e", "8x-1e", "8x99e", "999999999999x0e", "-8x0e", "8x0e++8x1o", "e"})
        CHECK_THROWS_AS(Irreps::parse(bad), mlff::Error);
}

TEST_CASE("mace wigner: invariant under rotations, normalised, symmetric up to the sign") {
    std::vector<std::vector<double>> d;
    for (int degree = 0; degree <= 6; ++degree) d.push_back(rotation_matrix(degree, kRotation));
    const auto at = [&](int l, size_t a, size_t b) {
        return d[static_cast<size_t>(l)][a * static_cast<size_t>(2 * l + 1) + b];
    };
    for (const std::array<int, 3>& degrees : {std::array{1, 1, 0},
                                              {1, 1, 1},
                                              {1, 1, 2},
                                              {2, 1, 2},
                                              {2, 2, 3},
                                              {3, 2, 1},
                                              {3, 3, 3},
                                              {4, 3, 2},
                                              {6, 1, 6},
                                              {3, 6, 4},
                                              {6, 6, 6}}) {
        const int l1 = degrees[0], l2 = degrees[1], l3 = degrees[2];
        CAPTURE(l1);
        CAPTURE(l2);
        CAPTURE(l3);
        const std::vector<double> c = wigner_3j(l1, l2, l3);
        const auto n1 = static_cast<size_t>(2 * l1 + 1), n2 = static_cast<size_t>(2 * l2 + 1),
                   n3 = static_cast<size_t>(2 * l3 + 1);
        REQUIRE(c.size() == n1 * n2 * n3);
        CHECK(std::abs(dot(c, c) - 1) <= 1e-14);
        // One axis after the other is turned by D.
        std::vector<double> first(c.size(), 0.0), second(c.size(), 0.0), third(c.size(), 0.0);
        for (size_t i = 0; i < n1; ++i)
            for (size_t j = 0; j < n2; ++j)
                for (size_t k = 0; k < n3; ++k) {
                    for (size_t a = 0; a < n1; ++a)
                        first[(a * n2 + j) * n3 + k] += at(l1, a, i) * c[(i * n2 + j) * n3 + k];
                }
        for (size_t i = 0; i < n1; ++i)
            for (size_t j = 0; j < n2; ++j)
                for (size_t k = 0; k < n3; ++k)
                    for (size_t b = 0; b < n2; ++b)
                        second[(i * n2 + b) * n3 + k] += at(l2, b, j) * first[(i * n2 + j) * n3 + k];
        for (size_t i = 0; i < n1; ++i)
            for (size_t j = 0; j < n2; ++j)
                for (size_t k = 0; k < n3; ++k)
                    for (size_t e = 0; e < n3; ++e)
                        third[(i * n2 + j) * n3 + e] += at(l3, e, k) * second[(i * n2 + j) * n3 + k];
        CHECK(largest_difference(third, c) <= 1e-12);
        const std::vector<double> swapped = wigner_3j(l2, l1, l3);
        const double sign = (l1 + l2 + l3) % 2 == 0 || l1 == l2 ? 1 : -1;
        if (l1 != l2)
            for (size_t i = 0; i < n1; ++i)
                for (size_t j = 0; j < n2; ++j)
                    for (size_t k = 0; k < n3; ++k)
                        CHECK(swapped[(j * n1 + i) * n3 + k] == sign * c[(i * n2 + j) * n3 + k]);
    }
    CHECK_THROWS_AS(wigner_3j(1, 1, 3), mlff::Error);
    CHECK_THROWS_AS(wigner_3j(12, 12, 0), mlff::Error);
}

namespace {

// 1 if the constants of the GPU kernels are the 3j symbols up to a factor, -1 if not, 0 if there is no such path.
template <int In, int Degree, int Out>
int compare_constants() {
    using Couplings = equivariant::gpu::PathCouplings<In, Degree, Out>;
    if constexpr (!Couplings::kExists) {
        return 0;
    } else {
        const std::vector<double> expected = wigner_3j(In, Degree, Out);
        std::vector<double> found(expected.size());
        uint64_t shares = 0;
        for (int i = 0; i < Couplings::kTermCount; ++i) {
            const equivariant::gpu::PathTerm& term = Couplings::kTerms.of[i];
            const int share = term.in * Couplings::kOut + term.out;
            if (term.is_first == ((shares >> share & 1) != 0)) return -1;
            shares |= uint64_t{1} << share;
            found[static_cast<size_t>((term.in * Couplings::kHarmonics + term.harmonic) * Couplings::kOut + term.out)] =
                static_cast<double>(term.value);
        }
        double product = 0, square = 0;
        for (size_t i = 0; i < found.size(); ++i) {
            product += found[i] * expected[i];
            square += found[i] * found[i];
        }
        for (double& x : found) x *= product / square;
        return shares == Couplings::kShares && largest_difference(found, expected) < 1e-7 ? 1 : -1;
    }
}
template <int In, int... I>
std::vector<int> compare_all(std::integer_sequence<int, I...>) {
    return {compare_constants<In, I / 4, I % 4>()...};
}

}  // namespace

TEST_CASE("mace wigner: the constants of the GPU kernels, up to a factor for each path") {
    int compared = 0;
    using Pairs = std::make_integer_sequence<int, 16>;
    for (const std::vector<int>& results : {compare_all<0>(Pairs()), compare_all<1>(Pairs()), compare_all<2>(Pairs())})
        for (int result : results) {
            CHECK(result >= 0);
            compared += result;
        }
    CHECK(compared == 24);
}

TEST_CASE("mace wigner: the symbols that the files store") {
    int compared = 0;
    const std::function<void(const mlff::Module&)> visit = [&](const mlff::Module& module) {
        for (const auto& entry : module.tensors) {
            const std::string& name = entry.first;
            const mlff::Tensor& tensor = entry.second;
            if (name.rfind("_w3j_", 0) != 0 || tensor.shape.size() != 3) continue;
            const auto degree = [&](size_t axis) { return static_cast<int>((tensor.shape[axis] - 1) / 2); };
            CAPTURE(name);
            const double tolerance = tensor.dtype == mlff::DType::float64 ? 1e-14 : 1e-7;
            CHECK(largest_difference(tensor.to_doubles(), wigner_3j(degree(0), degree(1), degree(2))) <= tolerance);
            ++compared;
        }
        for (const auto& [name, child] : module.children) visit(child);
    };
    for (const auto& directory : golden_directories())
        for (const auto& path : golden_cases(directory)) {
            std::ifstream file(path);
            const nlohmann::json golden = nlohmann::json::parse(file);
            if (golden["container"] == "state_dict") continue;
            visit(mlff::open_module_file((directory / golden["model_file"].get<std::string>()).string()).root);
        }
    MESSAGE(compared, " stored symbols compared");
}

TEST_CASE("mace harmonics: explicit formulas, sum rule, gradients") {
    Random random;
    for (int sample = 0; sample < 20; ++sample) {
        const std::vector<double> v = random.numbers(3);
        const double r = std::sqrt(dot(v, v));
        const double x = v[0] / r, y = v[1] / r, z = v[2] / r, s3 = std::sqrt(3.0), s5 = std::sqrt(5.0),
                     s7 = std::sqrt(7.0);
        const double a = std::sqrt(5.0 / 8), b = std::sqrt(15.0), c = std::sqrt(3.0 / 8);
        const std::vector<double> expected = {1,
                                              s3 * x,
                                              s3 * y,
                                              s3 * z,
                                              s5 * s3 * x * z,
                                              s5 * s3 * x * y,
                                              s5 * (y * y - (x * x + z * z) / 2),
                                              s5 * s3 * y * z,
                                              s5 * s3 / 2 * (z * z - x * x),
                                              s7 * a * x * (3 * z * z - x * x),
                                              s7 * b * x * y * z,
                                              s7 * c * x * (4 * y * y - x * x - z * z),
                                              s7 * y * (2 * y * y - 3 * x * x - 3 * z * z) / 2,
                                              s7 * c * z * (4 * y * y - x * x - z * z),
                                              s7 * b / 2 * y * (z * z - x * x),
                                              s7 * a * z * (z * z - 3 * x * x)};
        constexpr int kDegree = 6;
        std::vector<double> found(static_cast<size_t>(harmonic_count(kDegree)));
        std::vector<mlff::Vec3> gradients(found.size());
        compute_harmonics_and_gradients(kDegree, {v[0], v[1], v[2]}, found.data(), gradients.data());
        CHECK(largest_difference({found.begin(), found.begin() + 16}, expected) <= 1e-14);
        for (int l = 0; l <= kDegree; ++l) {
            double sum = 0;
            for (int m = -l; m <= l; ++m) sum += std::pow(found[static_cast<size_t>(l * l + l + m)], 2);
            CHECK(std::abs(sum - (2 * l + 1)) <= 1e-12);
        }
        const std::vector<double> weights = random.numbers(found.size());
        std::vector<double> gradient(3, 0.0);
        for (size_t lm = 0; lm < found.size(); ++lm)
            for (size_t k = 0; k < 3; ++k) gradient[k] += weights[lm] * gradients[lm][k];
        const Function f = [&](const std::vector<double>& w) {
            const double length = std::sqrt(dot(w, w));
            std::vector<double> result(found.size());
            compute_harmonics(kDegree, {w[0] / length, w[1] / length, w[2] / length}, result.data());
            return result;
        };
        if (r > 0.3) check_gradient(f, v, weights, gradient);
    }
}
