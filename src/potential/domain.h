// SPDX-License-Identifier: MIT
// A domain: one part of a system, while other processes evaluate the other parts at the same time. It has its own atoms
// and ghosts. Ghosts are copies of atoms of other domains, and periodic images, within the reach of the model
// (ModelSummary::reach) of an own atom.
//
// Only own atoms receive messages. The features of ghosts that a layer reads come from the domains that own the atoms.
// A row is what one atom sends: its features, or their gradients. Gradients of ghosts may also return to their owners.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "core/system_view.h"

namespace mlff {

// How rows go from one domain to another.
enum class RowTransport {
    host,    // exchange() gets host memory
    device,  // exchange() gets GPU memory, if the evaluator is on a GPU
    shared,  // a GPU reads rows in the memory of the other GPUs; exchange() only brings addresses and synchronises
    window,  // a GPU copies rows to, and from, host memory that all domains share; exchange() as with `shared`
};

// Communication between the domains of a system; the caller implements it.
class HaloExchange {
public:
    virtual ~HaloExchange() = default;
    // `sent` has one row of `row_bytes` for each atom of Halo::sent, in that order. Write Halo::received_count rows
    // from other domains to `received`. Every domain of the system, also one without atoms, makes the same number of
    // calls with rows of the same size, on the thread that asked for the evaluation. With shared or window it must
    // return only after all domains that this one sends to or receives from have called it.
    virtual void exchange(const void* sent, void* received, size_t row_bytes) = 0;

    // The other way round, for gradients of ghosts: `given` has Halo::received_count rows, each for the domain that it
    // came from in exchange(); write one row for each atom of Halo::sent to `returned`. Models do without it, with
    // larger rows, if any domain cannot do it: then can_return() is false in all.
    virtual bool can_return() const { return false; }
    virtual void give_back(const void* given, void* returned, size_t row_bytes) {
        (void)given, (void)returned, (void)row_bytes;
    }
};

// Which rows go to other domains, and where the rows of ghosts come from.
struct Halo {
    // Own atoms whose rows go to other domains. An atom that goes to several domains is listed once for each.
    std::span<const int32_t> sent;
    int64_t received_count = 0;  // rows from other domains
    // [ghost]: the index of its received row, or -1 - atom if the ghost is an image of that own atom.
    std::span<const int32_t> source;
    HaloExchange* exchange = nullptr;
    RowTransport transport = RowTransport::host;
};

struct Domain {
    SystemView atoms;  // own atoms, then ghosts; not periodic, since images are ghosts
    int64_t owned_count = 0;
    // Of the whole system, for terms without a cutoff; zero where the caller does not give it.
    Mat3 cell{};
    std::array<bool, 3> periodic{};
    // Neighbour candidates of own atoms: those of atom i are neighbors[first[i]] ... neighbors[first[i + 1] - 1]. A
    // pair of own atoms is listed from both ends. Pairs beyond the cutoff are ignored.
    const int64_t* first = nullptr;      // [owned_count + 1]
    const int32_t* neighbors = nullptr;  // indices of own atoms and of ghosts
    Halo halo;
    // If it is not 0 and equals that of the call before, candidates and halo are unchanged. With RowTransport::shared
    // or window it changes in all domains together.
    int64_t list_version = 0;

    // The whole system's cell, without atoms.
    SystemView whole_cell() const { return {.cell = cell, .periodic = periodic}; }
};

}  // namespace mlff
