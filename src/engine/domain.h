// SPDX-License-Identifier: MIT
// A part of a system whose other parts are evaluated elsewhere, at the same time: atoms of its own and ghosts, copies of atoms of other parts (or
// periodic images of its own) that are within the cutoff. Messages are passed to own atoms only; what a layer needs of ghosts comes from their owners.
#pragma once

#include <cstddef>
#include <span>

#include "core/system_view.h"

namespace mlff {

// Rows of numbers, one for each atom of the domain, one behind the other.
struct DomainRows {
    void* first = nullptr;
    size_t row_bytes = 0;
};

// How the domains of a system hear from each other.
class HaloExchange {
public:
    virtual ~HaloExchange() = default;
    // Overwrites the rows of the ghosts with those that their owners have. Every domain of the system calls it equally often, with rows of the same
    // sizes, also one without atoms; on the thread that asked for the evaluation.
    virtual void fill_ghosts(std::span<const DomainRows> rows) = 0;
};

struct Domain {
    SystemView atoms;  // those of its own, then ghosts; without a cell: images are ghosts
    int64_t owned_count = 0;
    // Candidates for neighbours of own atoms, in both directions: those of atom i are neighbors[first[i]] ... neighbors[first[i + 1] - 1]. Those beyond the
    // cutoff are ignored.
    const int64_t* first = nullptr;      // [owned_count + 1]
    const int32_t* neighbors = nullptr;  // indices of own atoms and of ghosts
    HaloExchange* halo = nullptr;
};

}  // namespace mlff
