// SPDX-License-Identifier: MIT
#include "equivariant/wigner.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstdint>

#include "core/error.h"
#include "equivariant/irreps.h"

namespace mlff {
namespace {

using Complex = std::complex<double>;

// Binomial coefficients up to 2 kMaxDegree are below 2^20, so the sums of products of three below are exact in 64 bits.
int64_t binomial(int n, int k) {
    if (k < 0 || k > n) return 0;
    int64_t value = 1;
    for (int i = 1; i <= k; ++i) value = value * (n - k + i) / i;
    return value;
}

// Racah's formula up to a factor that depends on the degrees alone:
//   (l1 l2 l3; m1 m2 m3) ~ (-1)^(l1-l2-m3) / sqrt(B(2l1,l1-m1) B(2l2,l2-m2) B(2l3,l3-m3))
//                          * sum_k (-1)^k B(l1+l2-l3,k) B(l1-l2+l3,l1-m1-k) B(l2+l3-l1,l2+m2-k)
double complex_3j(int l1, int l2, int l3, int m1, int m2, int m3) {
    if (m1 + m2 + m3 != 0) return 0;
    int64_t sum = 0;
    for (int k = 0; k <= l1 + l2 - l3; ++k) {
        const int64_t term =
            binomial(l1 + l2 - l3, k) * binomial(l1 - l2 + l3, l1 - m1 - k) * binomial(l2 + l3 - l1, l2 + m2 - k);
        sum += k % 2 == 0 ? term : -term;
    }
    const double norm = static_cast<double>(binomial(2 * l1, l1 - m1)) *
                        static_cast<double>(binomial(2 * l2, l2 - m2)) * static_cast<double>(binomial(2 * l3, l3 - m3));
    const bool odd = (l1 - l2 - m3) % 2 != 0;
    return (odd ? -1.0 : 1.0) * static_cast<double>(sum) / std::sqrt(norm);
}

// A real harmonic R_m as a sum of two complex ones: R_m = (Y_-m + (-1)^m Y_m) / sqrt 2 for m > 0,
// R_-m = i (Y_-m - (-1)^m Y_m) / sqrt 2, R_0 = Y_0. Returns the weight of Y_order in R_m.
Complex real_from_complex(int m, int order) {
    const int size = std::abs(m);
    if (std::abs(order) != size) return 0;
    if (m == 0) return 1;
    const double sign = size % 2 == 0 ? 1 : -1;
    const double half = std::sqrt(0.5);
    if (m > 0) return order < 0 ? Complex(half, 0) : Complex(sign * half, 0);
    return order < 0 ? Complex(0, half) : Complex(0, -sign * half);
}

// One entry of the invariant tensor in the real basis. It is real if l1 + l2 + l3 is even, imaginary if odd.
Complex real_entry(const std::array<int, 3>& l, int a, int b, int c) {
    Complex sum = 0;
    for (int sign_a : {-1, 1}) {
        if (a == 0 && sign_a > 0) continue;
        for (int sign_b : {-1, 1}) {
            if (b == 0 && sign_b > 0) continue;
            const int m1 = sign_a * a, m2 = sign_b * b, m3 = -m1 - m2;
            if (std::abs(m3) != std::abs(c)) continue;
            sum += complex_3j(l[0], l[1], l[2], m1, m2, m3) * std::conj(real_from_complex(a, m1)) *
                   std::conj(real_from_complex(b, m2)) * std::conj(real_from_complex(c, m3));
        }
    }
    return sum;
}

// For l[0] <= l[1] <= l[2].
std::vector<double> sorted_3j(const std::array<int, 3>& l) {
    const bool imaginary = (l[0] + l[1] + l[2]) % 2 != 0;
    std::vector<double> tensor;
    double squares = 0;
    for (int a = -l[0]; a <= l[0]; ++a)
        for (int b = -l[1]; b <= l[1]; ++b)
            for (int c = -l[2]; c <= l[2]; ++c) {
                const Complex entry = real_entry(l, a, b, c);
                tensor.push_back(imaginary ? entry.imag() : entry.real());
                squares += tensor.back() * tensor.back();
            }
    const double norm = std::sqrt(squares);
    for (double& value : tensor) value = std::abs(value) < 1e-12 * norm ? 0 : value / norm;
    double leading = tensor[tensor.size() / 2];  // the centre: all three sizes are odd
    for (size_t i = 0; leading == 0 && i < tensor.size(); ++i) leading = tensor[i];
    if (leading < 0)
        for (double& value : tensor) value = -value;
    return tensor;
}

}  // namespace

std::vector<double> wigner_3j(int degree1, int degree2, int degree3) {
    const std::array<int, 3> degrees = {degree1, degree2, degree3};
    for (int degree : degrees)
        if (degree < 0 || degree > kMaxDegree) fail(Status::internal, "no 3j symbols exist for degree ", degree);
    if (degree3 < std::abs(degree1 - degree2) || degree3 > degree1 + degree2)
        fail(Status::internal, "degrees ", degree1, ", ", degree2, " do not couple to ", degree3);

    std::array<size_t, 3> axis = {0, 1, 2};  // axis[i]: which argument is the i-th smallest
    std::stable_sort(axis.begin(), axis.end(), [&](size_t i, size_t j) { return degrees[i] < degrees[j]; });
    const std::array<int, 3> sorted = {degrees[axis[0]], degrees[axis[1]], degrees[axis[2]]};
    const std::vector<double> source = sorted_3j(sorted);

    const bool odd_permutation = (axis[0] > axis[1]) ^ (axis[0] > axis[2]) ^ (axis[1] > axis[2]);
    const bool negative = odd_permutation && (degree1 + degree2 + degree3) % 2 != 0;
    std::vector<double> result;
    result.reserve(source.size());
    std::array<int, 3> index;
    for (index[0] = 0; index[0] <= 2 * degree1; ++index[0])
        for (index[1] = 0; index[1] <= 2 * degree2; ++index[1])
            for (index[2] = 0; index[2] <= 2 * degree3; ++index[2]) {
                const int row = index[axis[0]] * (2 * sorted[1] + 1) + index[axis[1]];
                const double value = source[static_cast<size_t>(row * (2 * sorted[2] + 1) + index[axis[2]])];
                result.push_back(negative ? -value : value);
            }
    return result;
}

}  // namespace mlff
