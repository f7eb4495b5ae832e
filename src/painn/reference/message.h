// SPDX-License-Identifier: MIT
// The message of an edge: the filter of its length times the sender's phi, along the edge and along the sender's
// vectors. Arrays of 3F numbers have three consecutive parts of F: for the scalars, for v_j, for the direction u.
#pragma once

#include "core/system_view.h"
#include "painn/weights/weights.h"

namespace mlff::painn::reference {

// filter[3F] = (filter.weight basis(d) + filter.bias) fade(d)
void compute_filter(const Weights& weights, const Block& block, double distance, double* filter);
// dE/dd from dE/dfilter
double reverse_filter(const Weights& weights, const Block& block, double distance, const double* filter_gradient);

// The inputs of a message.
struct Message {
    int hidden = 0;
    const double* filter = nullptr;   // [3F]
    const double* phi = nullptr;      // [3F], of the sender
    const double* vectors = nullptr;  // [3][F], of the sender
    Vec3 direction{};                 // u
};

// scalars[F], vectors[3][F] of the receiver += the message
void add_message(const Message& message, double* scalars, double* vectors);

struct MessageGradient {
    double* filter = nullptr;   // [3F], overwritten
    double* phi = nullptr;      // [3F], added to
    double* vectors = nullptr;  // [3][F], added to
    Vec3 direction{};           // overwritten
};
// Computes the gradients from those of the receiver's scalars and vectors.
void reverse_message(const Message& message, const double* scalars_gradient, const double* vectors_gradient,
                     MessageGradient& gradient);

}  // namespace mlff::painn::reference
