// SPDX-License-Identifier: MIT
// The sum of messages over edges, with explicit first and second derivatives. Nearly all of the time of a step goes
// into arrays of size edges x channels; this reads and writes each as rarely as tensor operations allow.
#pragma once

#include "train/torch_headers.h"

namespace mlff::train {

struct EdgeLists {
    at::Tensor sender, receiver;  // int64 [edges]
    // For the kernels of message_kernels.h: edges grouped by receiver, those of an atom from first[atom] on, and the
    // reverse of each edge. Otherwise undefined.
    at::Tensor first, reverse;  // int64 [atoms + 1], [edges]
    bool uses_kernels = false;
};

struct NodeSums {
    at::Tensor scalars;  // [atoms][F]
    at::Tensor vectors;  // [atoms][3][F]
};

// x = phi[sender] * filter, parts x_s, x_v, x_u;  scalars_i = sum of x_s,  vectors_i = sum of (x_v v[sender] + x_u u).
// phi [atoms][3F], filter [edges][3F], v [atoms][3][F] (undefined: zero), u [edges][3]; differentiable twice with
// respect to all four but u, which is differentiable once.
NodeSums sum_messages(const at::Tensor& phi, const at::Tensor& filter, const at::Tensor& v, const at::Tensor& u,
                      const EdgeLists& lists);

}  // namespace mlff::train
