// SPDX-License-Identifier: MIT
// update_atoms() and reverse_atoms() for few atoms, models of width 128 and single precision. Clusters of blocks spread
// the work over more of the GPU.
#pragma once

#include "painn/gpu/atom_stages.h"

namespace mlff::painn::gpu {

bool runs_in_clusters(int width, int64_t atom_count);  // also asks whether the GPU has clusters
void update_atoms_in_clusters(const AtomStage<float>& stage, cudaStream_t stream);
void reverse_atoms_in_clusters(const AtomReverse<float>& stage, cudaStream_t stream);

}  // namespace mlff::painn::gpu
