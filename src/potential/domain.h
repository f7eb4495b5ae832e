// SPDX-License-Identifier: MIT
// A part of a system whose other parts are evaluated elsewhere, at the same time: atoms of its own and ghosts, copies
// of atoms of other parts (or periodic images of its own) that are within the cutoff. Messages are passed to own atoms
// only; what a layer needs of ghosts comes from their owners.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "core/system_view.h"

namespace mlff {

// How rows go from one domain to the other.
enum class RowTransport {
    host,    // exchange() is given memory of the host
    device,  // rows that are on a GPU are given to exchange() there
    shared,  // rows are read on the GPUs where other domains have packed them; exchange() brings addresses, and the
             // news that rows are there
};

// How the domains of a system hear from each other.
class HaloExchange {
public:
    virtual ~HaloExchange() = default;
    // `sent` has a row of `row_bytes` for each of Halo::sent, in that order; `received` gets Halo::received_count rows
    // from other domains. Every domain of the system calls it equally often, with rows of the same size, also one
    // without atoms; on the thread that asked for the evaluation. Where rows are shared, it returns after all domains
    // that are sent to or received from have called it.
    virtual void exchange(const void* sent, void* received, size_t row_bytes) = 0;
};

// Who wants which rows of atoms, and where those of ghosts come from.
struct Halo {
    std::span<const int32_t>
        sent;  // own atoms whose rows other domains want; one that several want is there several times
    int64_t received_count = 0;  // rows that come from other domains
    std::span<const int32_t>
        source;  // [ghost]: which of the rows received is its own; -1 - atom: it is an image of that own atom
    HaloExchange* exchange = nullptr;
    RowTransport transport = RowTransport::host;
};

struct Domain {
    SystemView atoms;  // those of its own, then ghosts; without a cell: images are ghosts
    int64_t owned_count = 0;
    // Of the whole system, for terms without a cutoff; zero where the caller does not give it.
    Mat3 cell{};
    std::array<bool, 3> periodic{};
    // Candidates for neighbours of own atoms, in both directions: those of atom i are neighbors[first[i]] ...
    // neighbors[first[i + 1] - 1]. Those beyond the cutoff are ignored.
    const int64_t* first = nullptr;      // [owned_count + 1]
    const int32_t* neighbors = nullptr;  // indices of own atoms and of ghosts
    Halo halo;
    // A call with the same one, if it is not 0, has the same candidates and the same halo as the call before it. Where
    // rows are shared, it changes in all domains together.
    int64_t list_version = 0;

    // The whole system's cell, without atoms.
    SystemView whole_cell() const { return {.cell = cell, .periodic = periodic}; }
};

}  // namespace mlff
