// SPDX-License-Identifier: MIT
// Parallel loops over atoms.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/threads.h"

namespace mlff {

// Calls work(atom) for every atom. A call may write only data of this atom and of the edges it receives. The result
// then does not depend on the number of threads.
template <class Work>
void for_each_atom(ThreadTeam& team, int64_t atom_count, const Work& work) {
    constexpr int64_t kAtomsPerChunk = 4;
    team.run((atom_count + kAtomsPerChunk - 1) / kAtomsPerChunk, [&](int64_t chunk, int) {
        const int64_t end = std::min(atom_count, (chunk + 1) * kAtomsPerChunk);
        for (int64_t atom = chunk * kAtomsPerChunk; atom < end; ++atom) work(atom);
    });
}

}  // namespace mlff
