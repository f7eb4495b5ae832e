// SPDX-License-Identifier: MIT
#include "nequip/functions/norm.h"

#include <cmath>

namespace mlff::nequip {
namespace {

// Calls visit(component, scale of its copy, its weight in s) for each component.
template <class Visit>
void for_each_component(const Norm& norm, const Irreps& irreps, const Visit& visit) {
    const double block_count = irreps.merged().block_count();
    size_t component = 0, copy = 0;
    for (const IrrepBlock& block : irreps.blocks()) {
        const double dimension = block.irrep.dimension();
        for (int u = 0; u < block.multiplicity; ++u, ++copy)
            for (int m = 0; m < block.irrep.dimension(); ++m)
                visit(component++, norm.scale[copy], 1 / (dimension * dimension * block_count));
    }
}

// 1 / sqrt(s + epsilon)
double inverse_deviation(const Norm& norm, const Irreps& irreps, const double* in) {
    double s = 0;
    for_each_component(norm, irreps, [&](size_t i, double, double weight) { s += weight * in[i] * in[i]; });
    return 1 / std::sqrt(s + norm.epsilon);
}

}  // namespace

void compute_norm(const Norm& norm, const Irreps& irreps, const double* in, double* out) {
    const double factor = inverse_deviation(norm, irreps, in);
    for_each_component(norm, irreps, [&](size_t i, double scale, double) { out[i] = in[i] * scale * factor; });
}

// With f = 1 / sqrt(s + epsilon):  df/dx_i = -f^3 weight_i x_i.
void reverse_norm(const Norm& norm, const Irreps& irreps, const double* in, const double* out_gradient,
                  double* in_gradient) {
    const double factor = inverse_deviation(norm, irreps, in);
    double factor_gradient = 0;
    for_each_component(norm, irreps,
                       [&](size_t i, double scale, double) { factor_gradient += out_gradient[i] * in[i] * scale; });
    const double common = factor_gradient * factor * factor * factor;
    for_each_component(norm, irreps, [&](size_t i, double scale, double weight) {
        in_gradient[i] = out_gradient[i] * scale * factor - common * weight * in[i];
    });
}

}  // namespace mlff::nequip
