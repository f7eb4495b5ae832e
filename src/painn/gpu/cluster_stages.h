// SPDX-License-Identifier: MIT
// update_atoms() and reverse_atoms() for few atoms and models of width 128, except in double precision. Clusters of
// blocks spread the work over more of the GPU.
#pragma once

#include "painn/gpu/atom_stages.h"

namespace mlff::painn::gpu {

bool runs_in_clusters(int width, int64_t atom_count);  // also asks whether the GPU has clusters
template <class Stored>
void update_atoms_in_clusters(const AtomStage<Stored>& stage, cudaStream_t stream);
template <class Stored>
void reverse_atoms_in_clusters(const AtomReverse<Stored>& stage, cudaStream_t stream);

}  // namespace mlff::painn::gpu
