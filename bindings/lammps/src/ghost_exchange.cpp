// SPDX-License-Identifier: GPL-2.0-only
#include "ghost_exchange.h"

#include <algorithm>

namespace mlff_lammps {
namespace {

constexpr int kTag = 7741;

}  // namespace

GhostExchange::GhostExchange(MPI_Comm world) : world_(world) {
    MPI_Comm_rank(world_, &rank_);
    MPI_Comm_size(world_, &rank_count_);
}

void GhostExchange::plan(const std::vector<Owner>& owner_of_ghost) {
    sends_.clear();
    receives_.clear();

    // The atoms needed from each rank, each once.
    std::vector<std::vector<int32_t>> wanted(static_cast<size_t>(rank_count_));
    for (const Owner& owner : owner_of_ghost)
        if (owner.rank != rank_) wanted[static_cast<size_t>(owner.rank)].push_back(owner.atom);
    std::vector<int> wanted_counts(wanted.size()), wanted_starts(wanted.size()), asked_counts(wanted.size()),
        asked_starts(wanted.size());
    std::vector<int32_t> wanted_atoms;
    for (size_t rank = 0; rank < wanted.size(); ++rank) {
        std::vector<int32_t>& atoms = wanted[rank];
        std::sort(atoms.begin(), atoms.end());
        atoms.erase(std::unique(atoms.begin(), atoms.end()), atoms.end());
        wanted_counts[rank] = static_cast<int>(atoms.size());
        wanted_starts[rank] = static_cast<int>(wanted_atoms.size());
        wanted_atoms.insert(wanted_atoms.end(), atoms.begin(), atoms.end());
    }
    received_count_ = static_cast<int64_t>(wanted_atoms.size());
    ghost_source_.clear();
    for (const Owner& owner : owner_of_ghost) {
        const std::vector<int32_t>& atoms = wanted[static_cast<size_t>(owner.rank)];
        const auto place = std::lower_bound(atoms.begin(), atoms.end(), owner.atom) - atoms.begin();
        ghost_source_.push_back(owner.rank == rank_
                                    ? -1 - owner.atom
                                    : wanted_starts[static_cast<size_t>(owner.rank)] + static_cast<int32_t>(place));
    }

    // The atoms that other ranks need from this one.
    MPI_Alltoall(wanted_counts.data(), 1, MPI_INT, asked_counts.data(), 1, MPI_INT, world_);
    size_t sent_count = 0;
    for (size_t rank = 0; rank < wanted.size(); ++rank) {
        asked_starts[rank] = static_cast<int>(sent_count);
        if (wanted_counts[rank] + asked_counts[rank] > 0) {
            receives_.push_back(
                {static_cast<int>(rank), static_cast<size_t>(wanted_starts[rank]), wanted_counts[rank]});
            sends_.push_back({static_cast<int>(rank), sent_count, asked_counts[rank]});
        }
        sent_count += static_cast<size_t>(asked_counts[rank]);
    }
    sent_.resize(sent_count);
    MPI_Alltoallv(wanted_atoms.data(), wanted_counts.data(), wanted_starts.data(), MPI_INT32_T, sent_.data(),
                  asked_counts.data(), asked_starts.data(), MPI_INT32_T, world_);
}

void GhostExchange::exchange(const void* sent, void* received, size_t row_bytes) {
    move(sends_, sent, receives_, received, row_bytes);
}

void GhostExchange::give_back(const void* given, void* returned, size_t row_bytes) {
    move(receives_, given, sends_, returned, row_bytes);
}

void GhostExchange::move(const std::vector<Message>& sends, const void* sent, const std::vector<Message>& receives,
                         void* received, size_t row_bytes) {
    requests_.clear();
    MPI_Datatype row_type;  // counts of rows fit an int; counts of bytes may not
    MPI_Type_contiguous(static_cast<int>(row_bytes), MPI_BYTE, &row_type);
    MPI_Type_commit(&row_type);
    for (const Message& message : receives) {
        requests_.emplace_back();
        MPI_Irecv(static_cast<char*>(received) + message.first * row_bytes, message.count, row_type, message.rank, kTag,
                  world_, &requests_.back());
    }
    for (const Message& message : sends) {
        requests_.emplace_back();
        MPI_Isend(static_cast<const char*>(sent) + message.first * row_bytes, message.count, row_type, message.rank,
                  kTag, world_, &requests_.back());
    }
    MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
    MPI_Type_free(&row_type);
}

}  // namespace mlff_lammps
