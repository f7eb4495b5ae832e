// SPDX-License-Identifier: MIT
#include "equivariant/linear.h"

#include <algorithm>

namespace mlff {
namespace {

struct PathView {
    const double* weight;  // [in_count][out_count] of this element
    const IrrepBlock& in;
    const IrrepBlock& out;
    int dimension;

    PathView(const Linear& linear, const Linear::Path& path, int element)
        : in(linear.in[path.in_block]), out(linear.out[path.out_block]), dimension(in.irrep.dimension()) {
        const int matrix = linear.element_count == 1 ? 0 : element;
        weight = path.weight.data() + int64_t{matrix} * in.multiplicity * out.multiplicity;
    }
};

}  // namespace

void compute_linear(const Linear& linear, int element, const double* in, double* out) {
    std::fill_n(out, linear.out.dimension(), 0.0);
    for (const Linear::Path& path : linear.paths) {
        const PathView view(linear, path, element);
        for (int u = 0; u < view.in.multiplicity; ++u)
            for (int w = 0; w < view.out.multiplicity; ++w) {
                const double weight = view.weight[u * view.out.multiplicity + w];
                for (int m = 0; m < view.dimension; ++m)
                    out[view.out.offset + w * view.dimension + m] +=
                        weight * in[view.in.offset + u * view.dimension + m];
            }
    }
    for (size_t i = 0; i < linear.bias.size(); ++i) out[i] += linear.bias[i];
}

void reverse_linear(const Linear& linear, int element, const double* out_gradient, double* in_gradient) {
    for (const Linear::Path& path : linear.paths) {
        const PathView view(linear, path, element);
        for (int u = 0; u < view.in.multiplicity; ++u)
            for (int w = 0; w < view.out.multiplicity; ++w) {
                const double weight = view.weight[u * view.out.multiplicity + w];
                for (int m = 0; m < view.dimension; ++m)
                    in_gradient[view.in.offset + u * view.dimension + m] +=
                        weight * out_gradient[view.out.offset + w * view.dimension + m];
            }
    }
}

}  // namespace mlff
