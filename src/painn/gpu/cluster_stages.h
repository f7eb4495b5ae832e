// SPDX-License-Identifier: MIT
// update_atoms() and reverse_atoms() for few atoms of a model of width 128 in single precision: spread over more of the
// GPU, by clusters of blocks.
#pragma once

#include "painn/gpu/atom_stages.h"

namespace mlff::painn::gpu {

bool runs_in_clusters(int width, int64_t atom_count);  // and the GPU can
void update_atoms_in_clusters(const AtomStage<float>& stage, cudaStream_t stream);
void reverse_atoms_in_clusters(const AtomReverse<float>& stage, cudaStream_t stream);

}  // namespace mlff::painn::gpu
