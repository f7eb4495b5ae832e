// SPDX-License-Identifier: MIT
// Copies rows (features or gradients of atoms) from own atoms to ghosts: packs, exchanges, unpacks.
#pragma once

#include <span>

#include "core/buffer.h"
#include "potential/domain.h"

namespace mlff {

// An array with one row for each atom of the domain.
struct DomainRows {
    void* first = nullptr;
    size_t row_bytes = 0;
};

class GhostRows {
public:
    // Overwrites the rows of ghosts, which come after those of `owned_count` own atoms, with the rows of their owners.
    // All arrays go in one exchange.
    void fill(const Halo& halo, int64_t owned_count, std::span<const DomainRows> rows);

private:
    Buffer<char> sent_, received_;  // [row][array]; members, so that a step allocates no memory
};

}  // namespace mlff
