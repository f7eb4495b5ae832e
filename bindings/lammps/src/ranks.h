// SPDX-License-Identifier: GPL-2.0-only
// What MPI ranks tell each other while a style is set up. Every rank of `world` calls each of these.
#pragma once

#include <mpi.h>

#include <string>

namespace mlff_lammps {

// "" if every rank's message is; else the message of the first whose is not.
std::string first_message(MPI_Comm world, const std::string& own);

int least_of_ranks(MPI_Comm world, int own);
int most_of_ranks(MPI_Comm world, int own);

// The number of this rank among those on the same machine, and their number.
struct Node {
    int rank = 0, rank_count = 1;
};
Node node_of(MPI_Comm world);

// Whether all ranks are on one machine.
bool is_one_node(MPI_Comm world);

// On rank 0 every different text of the ranks, in the order of the ranks: "cuda:0, cuda:1". Texts are cut at 31
// characters.
std::string different_texts(MPI_Comm world, const std::string& own);

}  // namespace mlff_lammps
