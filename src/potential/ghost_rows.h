// SPDX-License-Identifier: MIT
// What own atoms have, packed for the domains that want it, and what comes back, in the rows of ghosts.
#pragma once

#include <span>

#include "core/buffer.h"
#include "potential/domain.h"

namespace mlff {

// Rows of numbers, one for each atom of the domain, one behind the other.
struct DomainRows {
    void* first = nullptr;
    size_t row_bytes = 0;
};

// Packed rows are kept from call to call, so that a step takes no memory.
class GhostRows {
public:
    // Overwrites the rows of ghosts, which come after those of `owned_count` own atoms, with those that their owners
    // have: all arrays in one exchange.
    void fill(const Halo& halo, int64_t owned_count, std::span<const DomainRows> rows);

private:
    Buffer<char> sent_, received_;  // [row][array]
};

}  // namespace mlff
