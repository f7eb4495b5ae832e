// SPDX-License-Identifier: GPL-2.0-only
#include "ranks.h"

#include <algorithm>
#include <array>
#include <vector>

namespace mlff_lammps {

std::string first_message(MPI_Comm world, const std::string& own) {
    int rank = 0, rank_count = 1;
    MPI_Comm_rank(world, &rank);
    MPI_Comm_size(world, &rank_count);
    const int failed = least_of_ranks(world, own.empty() ? rank_count : rank);
    if (failed == rank_count) return "";
    int length = static_cast<int>(own.size());
    MPI_Bcast(&length, 1, MPI_INT, failed, world);
    std::string text = own;
    text.resize(static_cast<size_t>(length));
    MPI_Bcast(text.data(), length, MPI_CHAR, failed, world);
    return text;
}

int least_of_ranks(MPI_Comm world, int own) {
    MPI_Allreduce(MPI_IN_PLACE, &own, 1, MPI_INT, MPI_MIN, world);
    return own;
}

int most_of_ranks(MPI_Comm world, int own) {
    MPI_Allreduce(MPI_IN_PLACE, &own, 1, MPI_INT, MPI_MAX, world);
    return own;
}

Node node_of(MPI_Comm world) {
    Node node;
    MPI_Comm ranks;
    MPI_Comm_split_type(world, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &ranks);
    MPI_Comm_rank(ranks, &node.rank);
    MPI_Comm_size(ranks, &node.rank_count);
    MPI_Comm_free(&ranks);
    return node;
}

bool is_one_node(MPI_Comm world) {
    int rank_count = 1;
    MPI_Comm_size(world, &rank_count);
    return least_of_ranks(world, node_of(world).rank_count) == rank_count;
}

std::string different_texts(MPI_Comm world, const std::string& own) {
    using Text = std::array<char, 32>;
    int rank_count = 1;
    MPI_Comm_size(world, &rank_count);
    Text sent = {};
    std::copy_n(own.begin(), std::min(own.size(), sent.size() - 1), sent.begin());
    std::vector<Text> all(static_cast<size_t>(rank_count));
    MPI_Gather(sent.data(), sizeof(Text), MPI_CHAR, all.data(), sizeof(Text), MPI_CHAR, 0, world);
    std::string joined;
    for (auto text = all.begin(); text != all.end(); ++text)
        if (std::find(all.begin(), text, *text) == text)
            joined += (joined.empty() ? "" : ", ") + std::string(text->data());
    return joined;
}

}  // namespace mlff_lammps
