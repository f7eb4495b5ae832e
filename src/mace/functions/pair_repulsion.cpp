// SPDX-License-Identifier: MIT
#include "mace/functions/pair_repulsion.h"

#include <array>
#include <cmath>

namespace mlff::mace {

// V / 2, V = 14.3996 Z_i Z_j / r phi(r / a) f(r), a = prefactor 0.529 / (Z_i^e + Z_j^e), phi(x) = sum_k c_k exp(-e_k x)
ValueAndSlope pair_repulsion(const PairRepulsion& repulsion, const Weights& weights, int sender_element,
                             int receiver_element, double r) {
    constexpr std::array<double, 4> kDecay = {3.2, 0.9423, 0.4028, 0.2016};
    const double z1 = weights.atomic_numbers[static_cast<size_t>(sender_element)];
    const double z2 = weights.atomic_numbers[static_cast<size_t>(receiver_element)];
    const double length =
        repulsion.prefactor * 0.529 / (std::pow(z1, repulsion.exponent) + std::pow(z2, repulsion.exponent));
    const double radius =
        repulsion.radii[static_cast<size_t>(sender_element)] + repulsion.radii[static_cast<size_t>(receiver_element)];
    const ValueAndSlope f = cutoff_function({radius, repulsion.cutoff_exponent}, r);
    double phi = 0, phi_slope = 0;
    for (size_t k = 0; k < kDecay.size(); ++k) {
        const double term = repulsion.coefficients[k] * std::exp(-kDecay[k] * r / length);
        phi += term;
        phi_slope -= kDecay[k] / length * term;
    }
    const double coulomb = 0.5 * 14.3996 * z1 * z2 / r;
    return {coulomb * phi * f.value, coulomb * (phi_slope * f.value + phi * f.slope - phi * f.value / r)};
}

}  // namespace mlff::mace
