// SPDX-License-Identifier: GPL-2.0-only
#include "ghost_exchange.h"

#include <algorithm>
#include <cstring>

namespace mlff_lammps {
namespace {

constexpr int kTag = 7741;

char* row(const mlff_domain_rows& rows, size_t atom) { return static_cast<char*>(rows.first) + atom * rows.row_bytes; }

}  // namespace

GhostExchange::GhostExchange(MPI_Comm world) : world_(world) {
    MPI_Comm_rank(world_, &rank_);
    MPI_Comm_size(world_, &rank_count_);
}

void GhostExchange::plan(int owned_count, const std::vector<Owner>& owner_of_ghost) {
    owned_count_ = owned_count;
    sends_.clear();
    receives_.clear();
    copies_of_own_.clear();
    copies_of_received_.clear();

    // What is wanted of each rank, every atom once.
    std::vector<std::vector<int>> wanted(static_cast<size_t>(rank_count_));
    for (size_t ghost = 0; ghost < owner_of_ghost.size(); ++ghost) {
        const Owner& owner = owner_of_ghost[ghost];
        if (owner.rank == rank_)
            copies_of_own_.push_back({static_cast<int>(ghost), static_cast<size_t>(owner.atom)});
        else
            wanted[static_cast<size_t>(owner.rank)].push_back(owner.atom);
    }
    std::vector<int> wanted_counts(wanted.size()), wanted_starts(wanted.size()), asked_counts(wanted.size()), asked_starts(wanted.size()), wanted_atoms;
    for (size_t rank = 0; rank < wanted.size(); ++rank) {
        std::vector<int>& atoms = wanted[rank];
        std::sort(atoms.begin(), atoms.end());
        atoms.erase(std::unique(atoms.begin(), atoms.end()), atoms.end());
        wanted_counts[rank] = static_cast<int>(atoms.size());
        wanted_starts[rank] = static_cast<int>(wanted_atoms.size());
        if (!atoms.empty()) receives_.push_back({static_cast<int>(rank), atoms, wanted_atoms.size()});
        wanted_atoms.insert(wanted_atoms.end(), atoms.begin(), atoms.end());
    }
    received_count_ = wanted_atoms.size();
    for (size_t ghost = 0; ghost < owner_of_ghost.size(); ++ghost) {
        const Owner& owner = owner_of_ghost[ghost];
        if (owner.rank == rank_) continue;
        const std::vector<int>& atoms = wanted[static_cast<size_t>(owner.rank)];
        const auto place = std::lower_bound(atoms.begin(), atoms.end(), owner.atom) - atoms.begin();
        copies_of_received_.push_back({static_cast<int>(ghost), static_cast<size_t>(wanted_starts[static_cast<size_t>(owner.rank)] + place)});
    }

    // What others want of this one.
    MPI_Alltoall(wanted_counts.data(), 1, MPI_INT, asked_counts.data(), 1, MPI_INT, world_);
    sent_count_ = 0;
    for (size_t rank = 0; rank < wanted.size(); ++rank) {
        asked_starts[rank] = static_cast<int>(sent_count_);
        sent_count_ += static_cast<size_t>(asked_counts[rank]);
    }
    std::vector<int> asked_atoms(sent_count_);
    MPI_Alltoallv(wanted_atoms.data(), wanted_counts.data(), wanted_starts.data(), MPI_INT, asked_atoms.data(), asked_counts.data(), asked_starts.data(),
                  MPI_INT, world_);
    for (size_t rank = 0; rank < wanted.size(); ++rank) {
        const int* begin = asked_atoms.data() + asked_starts[rank];
        if (asked_counts[rank] > 0) sends_.push_back({static_cast<int>(rank), {begin, begin + asked_counts[rank]}, static_cast<size_t>(asked_starts[rank])});
    }
}

void GhostExchange::fill(const mlff_domain_rows* rows, int64_t count) {
    size_t atom_bytes = 0;
    for (int64_t i = 0; i < count; ++i) atom_bytes += rows[i].row_bytes;
    send_buffer_.resize(std::max(send_buffer_.size(), sent_count_ * atom_bytes));
    receive_buffer_.resize(std::max(receive_buffer_.size(), received_count_ * atom_bytes));
    requests_.clear();
    MPI_Datatype atom_type;  // counts of atoms stay far below the largest int, counts of bytes need not
    MPI_Type_contiguous(static_cast<int>(atom_bytes), MPI_BYTE, &atom_type);
    MPI_Type_commit(&atom_type);
    for (const Message& message : receives_) {
        requests_.emplace_back();
        MPI_Irecv(receive_buffer_.data() + message.first * atom_bytes, static_cast<int>(message.atoms.size()), atom_type, message.rank, kTag, world_,
                  &requests_.back());
    }
    for (const Message& message : sends_) {
        char *begin = send_buffer_.data() + message.first * atom_bytes, *next = begin;
        for (const int atom : message.atoms)
            for (int64_t i = 0; i < count; ++i) {
                std::memcpy(next, row(rows[i], static_cast<size_t>(atom)), rows[i].row_bytes);
                next += rows[i].row_bytes;
            }
        requests_.emplace_back();
        MPI_Isend(begin, static_cast<int>(message.atoms.size()), atom_type, message.rank, kTag, world_, &requests_.back());
    }
    const auto ghost_row = [this](const mlff_domain_rows& array, const Copy& copy) {
        return row(array, static_cast<size_t>(owned_count_) + static_cast<size_t>(copy.ghost));
    };
    for (int64_t i = 0; i < count; ++i)
        for (const Copy& copy : copies_of_own_) std::memcpy(ghost_row(rows[i], copy), row(rows[i], copy.from), rows[i].row_bytes);
    MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
    MPI_Type_free(&atom_type);
    for (const Copy& copy : copies_of_received_) {
        const char* from = receive_buffer_.data() + copy.from * atom_bytes;
        for (int64_t i = 0; i < count; ++i) {
            std::memcpy(ghost_row(rows[i], copy), from, rows[i].row_bytes);
            from += rows[i].row_bytes;
        }
    }
}

}  // namespace mlff_lammps
