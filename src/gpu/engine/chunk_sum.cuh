// SPDX-License-Identifier: MIT
// Sums of energies and virials over one chunk of atoms.
#pragma once

#include "gpu/engine/totals.h"
#include "gpu/engine/warp.h"

namespace mlff::gpu {

// Column number `column` of the totals of a chunk. All lanes of a warp must call it; all get the sum.
__device__ __forceinline__ double sum_chunk(const AtomResults& atoms, const AtomChunk& chunk, int column) {
    double sum = 0;
    if (column > 0 && !atoms.virials) return sum;
    const int end = column == 0 ? min(chunk.end, atoms.systems.owned_count) : chunk.end;
    for (int atom = chunk.begin + static_cast<int>(threadIdx.x % 32); atom < end; atom += 32)
        sum += column == 0 ? atoms.energies[atom] + atoms.energy.of_element[atoms.energy.elements[atom]].embedding
                           : atoms.virials[9 * int64_t{atom} + (column - 1)];
    return sum_over_warp(sum);
}

}  // namespace mlff::gpu
