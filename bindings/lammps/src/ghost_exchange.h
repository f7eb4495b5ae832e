// SPDX-License-Identifier: GPL-2.0-only
// Brings rows of numbers from the ranks that own atoms to those that have ghosts of them, straight from one to the other. An atom that a rank has several
// ghosts of is sent to it once; images of a rank's own atoms are copied.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

#include "mlff/mlff.h"

namespace mlff_lammps {

struct Owner {
    int rank = 0;
    int atom = 0;  // its number among the owner's atoms
};

class GhostExchange {
public:
    explicit GhostExchange(MPI_Comm world);

    // Who has what each ghost is a copy of. Every rank calls it, whenever the ghosts of one have changed.
    void plan(int owned_count, const std::vector<Owner>& owner_of_ghost);

    // Overwrites the rows of ghosts, which come after those of own atoms, with those of their owners. Every rank calls it, with rows of the same sizes.
    void fill(const mlff_domain_rows* rows, int64_t count);

private:
    // Atoms whose rows go to or come from another rank, in this order.
    struct Message {
        int rank;
        std::vector<int> atoms;
        size_t first;  // of these atoms in the buffer
    };
    struct Copy {
        int ghost;
        size_t from;  // an own atom, or a place in the buffer of what was received
    };

    MPI_Comm world_;
    int rank_ = 0, rank_count_ = 1;
    int owned_count_ = 0;
    size_t sent_count_ = 0, received_count_ = 0;
    std::vector<Message> sends_, receives_;
    std::vector<Copy> copies_of_own_, copies_of_received_;
    std::vector<char> send_buffer_, receive_buffer_;
    std::vector<MPI_Request> requests_;
};

}  // namespace mlff_lammps
