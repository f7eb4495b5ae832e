// SPDX-License-Identifier: GPL-2.0-only
// Communication between MPI ranks while a style is set up. Every rank of `world` must call each of these.
#pragma once

#include <mpi.h>

#include <string>

namespace mlff_lammps {

// "" if all ranks give ""; else the message of the first rank that gives one.
std::string first_message(MPI_Comm world, const std::string& own);

int least_of_ranks(MPI_Comm world, int own);
int most_of_ranks(MPI_Comm world, int own);

// The index of this rank among the ranks on the same machine, and their number.
struct Node {
    int rank = 0, rank_count = 1;
};
Node node_of(MPI_Comm world);

// True if all ranks are on one machine.
bool is_one_node(MPI_Comm world);

// On rank 0, the distinct texts of all ranks, in rank order: "cuda:0, cuda:1". Texts are cut at 31 characters.
std::string different_texts(MPI_Comm world, const std::string& own);

}  // namespace mlff_lammps
