// SPDX-License-Identifier: GPL-2.0-only
// Brings rows of numbers from the ranks that own atoms to those that have ghosts of them, straight from one to the
// other. An atom that a rank has several ghosts of is sent to it once; images of a rank's own atoms are sent to none.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mlff_lammps {

struct Owner {
    int rank = 0;
    int atom = 0;  // its number among the owner's atoms
};

class GhostExchange {
public:
    explicit GhostExchange(MPI_Comm world);

    // Who has what each ghost is a copy of. Every rank calls it, whenever the ghosts of one have changed.
    void plan(const std::vector<Owner>& owner_of_ghost);

    // What the plan is, as mlff_domain has it.
    const std::vector<int32_t>& sent() const { return sent_; }  // those of rank 0, those of rank 1, ...
    int64_t received_count() const { return received_count_; }
    const std::vector<int32_t>& ghost_source() const { return ghost_source_; }

    // Sends a row for each of sent() and receives received_count(). Every rank calls it, with rows of the same size.
    // Returns when all have called it that rows go to or come from.
    void exchange(const void* sent, void* received, size_t row_bytes);

private:
    // Rows that go to or come from another rank, which lie together; none, where they go the other way only.
    struct Message {
        int rank;
        size_t first;
        int count;
    };

    MPI_Comm world_;
    int rank_ = 0, rank_count_ = 1;
    std::vector<int32_t> sent_, ghost_source_;
    int64_t received_count_ = 0;
    std::vector<Message> sends_, receives_;
    std::vector<MPI_Request> requests_;
};

}  // namespace mlff_lammps
