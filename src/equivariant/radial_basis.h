// SPDX-License-Identifier: MIT
// Functions of one distance: transform, basis, cutoff.
#pragma once

#include <vector>

namespace mlff {

struct ValueAndSlope {
    double value = 0;
    double slope = 0;
};

// f(r) = 1 - (p+1)(p+2)/2 t^p + p(p+2) t^(p+1) - p(p+1)/2 t^(p+2), t = r / radius; 0 from `radius` on. With an onset
// (XPLOR): 1 up to there, then f(r) = (R^2 - r^2)^2 (R^2 + 2 r^2 - 3 onset^2) / (R^2 - onset^2)^3, R = radius. Its
// curvature has a step at the onset.
struct CutoffFunction {
    double radius = 0;
    int exponent = 0;
    double onset = 0;  // 0: none
};

// Distances may pass through a transform x(r) that depends on the two elements; the basis functions are functions of x.
struct RadialEmbedding {
    enum class Basis {
        bessel,    // factor sin(k_n x) / x,            parameters k_n
        gaussian,  // exp(factor (x - mu_n)^2),         parameters mu_n
        chebyshev  // T_n(x), n = 1, 2, ...
    };
    enum class Transform {
        none,
        agnesi,    // 1 / (1 + a y^q / (1 + y^(q-p))),   y = 2 r / s,  s = R_i + R_j
        soft,      // p0 + (r - p0) (1 + tanh(alpha (r - (p0 + p1) / 2) / (p1 - p0))) / 2,  p0 = 3s/4, p1 = 4s/3
        soft_2023  // r + (1 + tanh(-y - a y^b)) / 2,    y = 4 r / s
    };
    Basis basis = Basis::bessel;
    int basis_count = 0;
    double factor = 0;
    std::vector<double> parameters;  // [basis_count], empty for Chebyshev polynomials
    Transform transform = Transform::none;
    double a = 0, p = 0, q = 0, alpha = 0, b = 0;
    std::vector<double> radii;  // [element], R above, angstrom
    CutoffFunction cutoff;
    bool cutoff_in_basis = true;  // false: the cutoff multiplies the weights of messages and densities
};

ValueAndSlope cutoff_function(const CutoffFunction& cutoff, double r);
// The same, with one of its formulas continued to all distances: that above the onset, or that below it.
ValueAndSlope smooth_cutoff(const CutoffFunction& cutoff, bool is_above_onset, double r);

// x(r) for a pair of elements
ValueAndSlope transform_distance(const RadialEmbedding& radial, int sender_element, int receiver_element, double r);

// b_n(x(r)) without the cutoff, with derivatives with respect to r.
void bare_basis(const RadialEmbedding& radial, int sender_element, int receiver_element, double r,
                std::vector<ValueAndSlope>& basis);

// basis[n] = b_n(x(r)) f(r) and *cutoff = 1; with cutoff_in_basis false, basis[n] = b_n(x(r)) and *cutoff = f(r).
void compute_radial(const RadialEmbedding& radial, int sender_element, int receiver_element, double r, double* basis,
                    double* cutoff);
// dE/dr from dE/dbasis and dE/dcutoff.
double reverse_radial(const RadialEmbedding& radial, int sender_element, int receiver_element, double r,
                      const double* basis_gradient, double cutoff_gradient);

}  // namespace mlff
