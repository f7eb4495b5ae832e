// SPDX-License-Identifier: MIT
// The messages of messages.h stage by stage, as a framework of arrays computes them: the filters of all edges are
// stored, then all messages, then these are summed. They need 11 rows of F numbers for each edge, and bring all of them
// through memory. `mlff bench --compare fused=off` measures what the kernels without these rows gain.
#pragma once

#include <cuda_runtime.h>

#include "painn/gpu/messages.h"

namespace mlff::painn::gpu {

inline constexpr int kFilterRows = 3;   // s, v, u
inline constexpr int kMessageRows = 5;  // of the reverse, which has one more than the forward
inline constexpr int kFirstRows = 2;    // phi_s, phi_u of the first block

template <class Real>
struct PlainMessages {
    // In the first block, `sent` of the stage is [element][kFirstRows][F], `scalars` is [element][F], and there are no
    // vectors. Its reverse works from the receiver of an edge and writes nothing of atoms.
    bool is_first = false;
    const Real* weights = nullptr;  // [function][s, v, u][F]; the last function is the fade
    int radial_count = 0;
    double cutoff = 0;                // angstrom
    const double* closest = nullptr;  // [element][element], see near_field.h; or nullptr: none
    int element_count = 0;
    Real* filters = nullptr;   // [edge][kFilterRows][F]
    Real* slopes = nullptr;    // the same, by the distance; for the reverse
    Real* messages = nullptr;  // [edge][kMessageRows][F]
};

// Both use `edges`, `functions.direction` and the arrays of atoms of the stage, not its filter.
template <class Real>
void sum_messages_plainly(int width, const MessageStage<Real>& stage, const PlainMessages<Real>& plain,
                          cudaStream_t stream);
template <class Real>
void reverse_messages_plainly(int width, const MessageReverse<Real>& stage, const PlainMessages<Real>& plain,
                              cudaStream_t stream);

}  // namespace mlff::painn::gpu
