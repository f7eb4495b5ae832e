// SPDX-License-Identifier: MIT
// The couplings of paths (in, harmonic) -> out as constants, for kernels that are specialised for them: 3j symbols of
// real harmonics in e3nn's order, each path up to a factor. Paths may have any parity.
#pragma once

#include <cstdint>
#include <utility>

namespace mlff::equivariant::gpu {

inline constexpr int kMostHarmonicDegree = 3;  // of paths that kernels are specialised for
inline constexpr int kMostHarmonics = (kMostHarmonicDegree + 1) * (kMostHarmonicDegree + 1);

namespace couplings_detail {

constexpr double size_of(double x) { return x < 0 ? -x : x; }
constexpr double square_root(double x) {
    double root = x > 1 ? x : 1;
    for (int i = 0; i < 64; ++i) root = (root + x / root) / 2;
    return root;
}
constexpr double binomial(int n, int k) {
    if (k < 0 || k > n) return 0;
    double value = 1;
    for (int i = 1; i <= k; ++i) value = value * (n - k + i) / i;
    return value;
}

// Racah's formula up to a factor that depends on the degrees alone, as in equivariant/wigner.cpp; m3 = -m1 - m2.
constexpr double complex_3j(int l1, int l2, int l3, int m1, int m2) {
    const int m3 = -m1 - m2;
    double sum = 0;
    for (int k = 0; k <= l1 + l2 - l3; ++k)
        sum += (k % 2 == 0 ? 1 : -1) * binomial(l1 + l2 - l3, k) * binomial(l1 - l2 + l3, l1 - m1 - k) *
               binomial(l2 + l3 - l1, l2 + m2 - k);
    const double norm = binomial(2 * l1, l1 - m1) * binomial(2 * l2, l2 - m2) * binomial(2 * l3, l3 - m3);
    return ((l1 - l2 - m3) % 2 == 0 ? 1 : -1) * sum / square_root(norm);
}

struct Complex {
    double real = 0, imaginary = 0;
};
constexpr Complex operator*(Complex a, Complex b) {
    return {a.real * b.real - a.imaginary * b.imaginary, a.real * b.imaginary + a.imaginary * b.real};
}
// The conjugate of the weight of the complex harmonic `order` in the real harmonic m, |order| = |m|.
constexpr Complex real_from_complex(int m, int order) {
    if (m == 0) return {1, 0};
    const double half = square_root(0.5), sign = m % 2 == 0 ? half : -half;
    if (m > 0) return order < 0 ? Complex{half, 0} : Complex{sign, 0};
    return order < 0 ? Complex{0, -half} : Complex{0, sign};
}

// Real or imaginary, as all entries of a tensor are one or the other.
constexpr double real_entry(int l1, int l2, int l3, int a, int b, int c) {
    double sum = 0;
    for (int sign_a = -1; sign_a <= 1; sign_a += 2)
        for (int sign_b = -1; sign_b <= 1; sign_b += 2) {
            if ((a == 0 && sign_a > 0) || (b == 0 && sign_b > 0)) continue;
            const int m1 = sign_a * a, m2 = sign_b * b, m3 = -m1 - m2;
            if (m3 != c && m3 != -c) continue;
            const Complex weight = real_from_complex(a, m1) * real_from_complex(b, m2) * real_from_complex(c, m3);
            sum += complex_3j(l1, l2, l3, m1, m2) * ((l1 + l2 + l3) % 2 == 0 ? weight.real : weight.imaginary);
        }
    return sum;
}

}  // namespace couplings_detail

struct PathTerm {
    int in = 0, harmonic = 0, out = 0;  // components; `harmonic` counts within the degree
    float value = 0;
    bool is_first = false;  // of its share (in, out)
};

// A share (in, out) is the sum of its terms: value times harmonic. The size that most values have is 1, so that most
// products of a share cost nothing.
template <int InDegree, int HarmonicDegree, int OutDegree>
class PathCouplings {
    static constexpr int kMostTerms = (2 * InDegree + 1) * (2 * HarmonicDegree + 1) * (2 * OutDegree + 1);
    struct Terms {
        int count = 0;
        PathTerm of[kMostTerms] = {};
        uint64_t shares = 0;
    };
    static constexpr Terms list_terms() {
        Terms terms;
        double values[kMostTerms] = {};
        int found = 0;
        double unit = 1;
        int most = 0;
        for (int a = -InDegree; a <= InDegree; ++a)
            for (int c = -OutDegree; c <= OutDegree; ++c)
                for (int b = -HarmonicDegree; b <= HarmonicDegree; ++b) {
                    const double value = couplings_detail::real_entry(InDegree, HarmonicDegree, OutDegree, a, b, c);
                    if (couplings_detail::size_of(value) < 1e-9) continue;
                    values[found++] = value;
                    int share = (a + InDegree) * kOut + c + OutDegree;
                    terms.of[terms.count++] = {a + InDegree, b + HarmonicDegree, c + OutDegree, 0,
                                               (terms.shares >> share & 1) == 0};
                    terms.shares |= uint64_t{1} << share;
                    int same = 0;
                    for (int i = 0; i < found; ++i)
                        same += couplings_detail::size_of(couplings_detail::size_of(values[i]) -
                                                          couplings_detail::size_of(value)) < 1e-9;
                    if (same > most) {
                        most = same;
                        unit = value;
                    }
                }
        for (int i = 0; i < found; ++i) terms.of[i].value = static_cast<float>(values[i] / unit);
        return terms;
    }

public:
    static constexpr bool kExists = InDegree + HarmonicDegree >= OutDegree && InDegree + OutDegree >= HarmonicDegree &&
                                    HarmonicDegree + OutDegree >= InDegree;
    static constexpr int kIn = 2 * InDegree + 1, kHarmonics = 2 * HarmonicDegree + 1, kOut = 2 * OutDegree + 1,
                         kDegree = HarmonicDegree;
    static constexpr Terms kTerms = list_terms();
    static constexpr int kTermCount = kTerms.count;
    static constexpr uint64_t kShares = kTerms.shares;  // bit [in][out]: whether the share is not zero for all edges
};

template <class Couplings>
constexpr bool has_share(int in, int out) {
    return (Couplings::kShares >> (in * Couplings::kOut + out) & 1) != 0;
}

}  // namespace mlff::equivariant::gpu
