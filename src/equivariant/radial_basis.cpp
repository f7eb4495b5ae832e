// SPDX-License-Identifier: MIT
#include "equivariant/radial_basis.h"

#include <array>
#include <cmath>
#include <vector>

namespace mlff {
namespace {

double pair_radius(const std::vector<double>& radii, int sender_element, int receiver_element) {
    return radii[static_cast<size_t>(sender_element)] + radii[static_cast<size_t>(receiver_element)];
}

// 1 / (1 + a y^q / (1 + y^(q-p))), y = 2 r / s
ValueAndSlope agnesi_transform(const RadialEmbedding& radial, double sum_of_radii, double r) {
    const double y = 2 * r / sum_of_radii;
    const double numerator = radial.a * std::pow(y, radial.q);
    const double power = std::pow(y, radial.q - radial.p);
    const double denominator = 1 + power;
    const double value = 1 / (1 + numerator / denominator);
    const double slope_by_y =
        numerator / y * (radial.q * denominator - (radial.q - radial.p) * power) / (denominator * denominator);
    return {value, -value * value * slope_by_y * 2 / sum_of_radii};
}

// p0 + (r - p0) (1 + tanh(alpha (r - (p0 + p1) / 2) / (p1 - p0))) / 2, p0 = 3s/4, p1 = 4s/3
ValueAndSlope soft_transform(const RadialEmbedding& radial, double sum_of_radii, double r) {
    const double p0 = 0.75 * sum_of_radii;
    const double p1 = 4.0 / 3.0 * sum_of_radii;
    const double steepness = radial.alpha / (p1 - p0);
    const double t = std::tanh(steepness * (r - 0.5 * (p0 + p1)));
    return {p0 + (r - p0) * 0.5 * (1 + t), 0.5 * (1 + t) + (r - p0) * 0.5 * (1 - t * t) * steepness};
}

// r + (1 + tanh(-y - a y^b)) / 2, y = 4 r / s
ValueAndSlope soft_transform_2023(const RadialEmbedding& radial, double sum_of_radii, double r) {
    const double y = 4 * r / sum_of_radii;
    const double t = std::tanh(-y - radial.a * std::pow(y, radial.b));
    const double slope_by_y = -1 - radial.a * radial.b * std::pow(y, radial.b - 1);
    return {r + 0.5 * t + 0.5, 1 + 0.5 * (1 - t * t) * slope_by_y * 4 / sum_of_radii};
}

// b_n(x), n from 0; Chebyshev polynomials begin with T_1.
void basis_functions(const RadialEmbedding& radial, double x, std::vector<ValueAndSlope>& basis) {
    basis.resize(static_cast<size_t>(radial.basis_count));
    std::array<ValueAndSlope, 2> previous = {ValueAndSlope{x, 1}, ValueAndSlope{1, 0}};  // T_-1 = T_1 = x and T_0 = 1
    for (size_t n = 0; n < basis.size(); ++n) {
        switch (radial.basis) {
            case RadialEmbedding::Basis::bessel: {
                const double k = radial.parameters[n];
                const double sine = std::sin(k * x);
                basis[n] = {radial.factor * (sine / x), radial.factor * (k * std::cos(k * x) - sine / x) / x};
                break;
            }
            case RadialEmbedding::Basis::gaussian: {
                const double shifted = x - radial.parameters[n];
                const double value = std::exp(radial.factor * shifted * shifted);
                basis[n] = {value, 2 * radial.factor * shifted * value};
                break;
            }
            case RadialEmbedding::Basis::chebyshev: {  // T_n+1 = 2 x T_n - T_n-1
                basis[n] = {2 * x * previous[1].value - previous[0].value,
                            2 * previous[1].value + 2 * x * previous[1].slope - previous[0].slope};
                previous = {previous[1], basis[n]};
                break;
            }
        }
    }
}

}  // namespace

ValueAndSlope smooth_cutoff(const CutoffFunction& cutoff, bool is_above_onset, double r) {
    if (cutoff.onset > 0) {
        if (!is_above_onset) return {1, 0};
        const double square = r * r, end = cutoff.radius * cutoff.radius, begin = cutoff.onset * cutoff.onset,
                     width = end - begin, scale = 1 / (width * width * width);
        return {(end - square) * (end - square) * (end + 2 * square - 3 * begin) * scale,
                12 * r * (end - square) * (begin - square) * scale};
    }
    const double p = cutoff.exponent, t = r / cutoff.radius, power = std::pow(t, cutoff.exponent - 1);  // t^(p-1)
    const double value =
        1 - (p + 1) * (p + 2) / 2 * power * t + p * (p + 2) * power * t * t - p * (p + 1) / 2 * power * t * t * t;
    const double slope = p * (p + 1) * (p + 2) / 2 * power * (-1 + 2 * t - t * t);
    return {value, slope / cutoff.radius};
}

ValueAndSlope cutoff_function(const CutoffFunction& cutoff, double r) {
    if (r >= cutoff.radius) return {};
    return smooth_cutoff(cutoff, r >= cutoff.onset, r);
}

ValueAndSlope transform_distance(const RadialEmbedding& radial, int sender_element, int receiver_element, double r) {
    if (radial.transform == RadialEmbedding::Transform::none) return {r, 1};
    const double sum_of_radii = pair_radius(radial.radii, sender_element, receiver_element);
    switch (radial.transform) {
        case RadialEmbedding::Transform::agnesi: return agnesi_transform(radial, sum_of_radii, r);
        case RadialEmbedding::Transform::soft: return soft_transform(radial, sum_of_radii, r);
        case RadialEmbedding::Transform::soft_2023: return soft_transform_2023(radial, sum_of_radii, r);
        case RadialEmbedding::Transform::none: break;
    }
    return {r, 1};
}

void bare_basis(const RadialEmbedding& radial, int sender_element, int receiver_element, double r,
                std::vector<ValueAndSlope>& basis) {
    const ValueAndSlope x = transform_distance(radial, sender_element, receiver_element, r);
    basis_functions(radial, x.value, basis);
    for (ValueAndSlope& function : basis) function.slope *= x.slope;
}

void compute_radial(const RadialEmbedding& radial, int sender_element, int receiver_element, double r, double* basis,
                    double* cutoff) {
    const double f = cutoff_function(radial.cutoff, r).value;
    std::vector<ValueAndSlope> functions;
    bare_basis(radial, sender_element, receiver_element, r, functions);
    for (size_t n = 0; n < functions.size(); ++n) basis[n] = functions[n].value * (radial.cutoff_in_basis ? f : 1);
    *cutoff = radial.cutoff_in_basis ? 1 : f;
}

double reverse_radial(const RadialEmbedding& radial, int sender_element, int receiver_element, double r,
                      const double* basis_gradient, double cutoff_gradient) {
    const ValueAndSlope f = cutoff_function(radial.cutoff, r);
    std::vector<ValueAndSlope> functions;
    bare_basis(radial, sender_element, receiver_element, r, functions);
    double sum = radial.cutoff_in_basis ? 0 : cutoff_gradient * f.slope;
    for (size_t n = 0; n < functions.size(); ++n)
        sum += basis_gradient[n] * (radial.cutoff_in_basis ? functions[n].slope * f.value + functions[n].value * f.slope
                                                           : functions[n].slope);
    return sum;
}

}  // namespace mlff
