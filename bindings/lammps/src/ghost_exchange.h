// SPDX-License-Identifier: GPL-2.0-only
// Sends per-atom data from the ranks that own atoms directly to the ranks that have ghosts of them. If a rank has
// several ghosts of an atom, the atom is sent once. Ghosts of a rank's own atoms are not sent.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mlff_lammps {

struct Owner {
    int rank = 0;
    int atom = 0;  // index among the owner's atoms
};

class GhostExchange {
public:
    explicit GhostExchange(MPI_Comm world);

    // Sets the owner of each ghost. All ranks must call it whenever the ghosts of any rank have changed.
    void plan(const std::vector<Owner>& owner_of_ghost);

    // The plan, in the form of mlff_domain.
    const std::vector<int32_t>& sent() const { return sent_; }  // grouped by destination: for rank 0, for rank 1, ...
    int64_t received_count() const { return received_count_; }
    const std::vector<int32_t>& ghost_source() const { return ghost_source_; }

    // Sends one row for each of sent(), and receives received_count() rows. All ranks must call it, with rows of the
    // same size. Returns when all communication partners have called it.
    void exchange(const void* sent, void* received, size_t row_bytes);
    // The other way round: received_count() rows go back where they came from, and one row for each of sent() arrives.
    void give_back(const void* given, void* returned, size_t row_bytes);

private:
    // The rows sent to, or received from, another rank. They are contiguous; possibly none.
    struct Message {
        int rank;
        size_t first;
        int count;
    };

    void move(const std::vector<Message>& sends, const void* sent, const std::vector<Message>& receives, void* received,
              size_t row_bytes);

    MPI_Comm world_;
    int rank_ = 0, rank_count_ = 1;
    std::vector<int32_t> sent_, ghost_source_;
    int64_t received_count_ = 0;
    std::vector<Message> sends_, receives_;
    std::vector<MPI_Request> requests_;
};

}  // namespace mlff_lammps
