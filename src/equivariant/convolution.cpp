// SPDX-License-Identifier: MIT
#include "equivariant/convolution.h"

namespace mlff {
namespace {

// Calls visit(path, u, first feature, first message component) for each copy u of each path.
template <class Visit>
void for_each_copy(const Convolution& convolution, const Visit& visit) {
    for (const Convolution::Path& path : convolution.paths) {
        const IrrepBlock& in = convolution.in[path.in_block];
        const IrrepBlock& out = convolution.out[path.out_block];
        for (int u = 0; u < in.multiplicity; ++u)
            visit(path, path.weight_offset + u, in.offset + u * in.irrep.dimension(),
                  out.offset + u * out.irrep.dimension());
    }
}

}  // namespace

void compute_message(const Convolution& convolution, const double* features, const double* harmonics,
                     const double* weights, double* message) {
    for_each_copy(convolution, [&](const Convolution::Path& path, int weight, int in, int out) {
        for (const Convolution::Coupling& c : path.couplings)
            message[out + c.out] += weights[weight] * c.value * features[in + c.in] * harmonics[c.harmonic];
    });
}

void reverse_message_of_edge(const Convolution& convolution, const double* features, const double* harmonics,
                             const double* weights, const double* message_gradient, double* harmonics_gradient,
                             double* weights_gradient) {
    for_each_copy(convolution, [&](const Convolution::Path& path, int weight, int in, int out) {
        double sum = 0;
        for (const Convolution::Coupling& c : path.couplings) {
            const double common = c.value * features[in + c.in] * message_gradient[out + c.out];
            sum += common * harmonics[c.harmonic];
            harmonics_gradient[c.harmonic] += weights[weight] * common;
        }
        weights_gradient[weight] = sum;
    });
}

void reverse_message_of_sender(const Convolution& convolution, const double* harmonics, const double* weights,
                               const double* message_gradient, double* features_gradient) {
    for_each_copy(convolution, [&](const Convolution::Path& path, int weight, int in, int out) {
        for (const Convolution::Coupling& c : path.couplings)
            features_gradient[in + c.in] +=
                weights[weight] * c.value * harmonics[c.harmonic] * message_gradient[out + c.out];
    });
}

}  // namespace mlff
