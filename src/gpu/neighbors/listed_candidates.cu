// SPDX-License-Identifier: MIT
#include "gpu/neighbors/listed_candidates.h"

#include "core/error.h"
#include "gpu/neighbors/team.cuh"
#include "gpu/runtime/cuda_check.h"

namespace mlff::gpu {
namespace {

constexpr int kTeamThreads = 32;
using ListTeam = Team<kTeamThreads>;

struct ListView {
    int64_t atom_count;
    const int64_t* first;
    const int32_t* listed;
    Candidate* candidates;
    int32_t* reverse;
    Site* sites;
    int64_t* one_way;
};

// Launch: one team per atom. Each thread finds the reverse of one candidate at a time.
__global__ void __launch_bounds__(kBlockThreads) make_candidates(ListView view) {
    mlff::gpu::await_predecessor();
    const ListTeam team;
    const int64_t atom = team.atom();
    if (atom >= view.atom_count) return;
    if (team.rank() == 0) view.sites[atom] = {{0, 0, 0}, {0, 0, 0}, static_cast<int32_t>(atom)};
    for (int64_t index = view.first[atom] + team.rank(); index < view.first[atom + 1]; index += kTeamThreads) {
        const int32_t other = view.listed[index];
        const int64_t begin = view.first[other], end = view.first[other + 1];
        int64_t at = begin;
        while (at < end && view.listed[at] != atom) ++at;
        view.candidates[index] = {other, pack_image(0, 0, 0)};
        view.reverse[index] = static_cast<int32_t>(at - begin);
        if (at < end) continue;
        view.reverse[index] = -1;
        *view.one_way = atom << 32 | other;  // if there are several, the last write wins
    }
}

}  // namespace

void ListedCandidates::set(int64_t atom_count, const ListedNeighbors& list, const std::function<void(int64_t)>& admit,
                           cudaStream_t stream) {
    constexpr const char* kPurpose = "candidate neighbours";
    check_listed_neighbors(atom_count, list);
    listed_by_.find(atom_count, list);
    const int64_t own = list.receiver_count, own_total = list.first[own], total = own_total + listed_by_.count();
    admit(total);
    for_each_array([&](auto& array, int64_t width) { array.resize_discard(width * total, kPurpose); });
    first_.resize_discard(atom_count + 1, kPurpose);
    sites_.resize_discard(atom_count, kPurpose);
    one_way_.resize_discard(1, kPurpose);
    const auto copy = [&](auto* to, const auto* from, int64_t count) {
        if (count > 0)
            check(cudaMemcpyAsync(to, from, static_cast<size_t>(count) * sizeof *to, cudaMemcpyHostToDevice, stream),
                  "copying neighbours");
    };
    Buffer<int64_t> first_of_rest;
    first_of_rest.resize_discard(listed_by_.first().size());
    for (size_t i = 0; i < first_of_rest.size(); ++i) first_of_rest[i] = own_total + listed_by_.first()[i];
    copy(first_.data(), list.first, own);
    copy(first_.data() + own, first_of_rest.data(), static_cast<int64_t>(first_of_rest.size()));
    copy(listed_.data(), list.neighbors, own_total);
    copy(listed_.data() + own_total, listed_by_.neighbors().data(), listed_by_.count());
    check(cudaMemsetAsync(one_way_.data(), 0xff, sizeof(int64_t), stream), "clearing a flag");
    if (atom_count > 0)
        launch("pairing neighbours", make_candidates, ListTeam::blocks(atom_count), kBlockThreads, stream,
               ListView{atom_count, first_.data(), listed_.data(), candidates_.data(), reverse_.data(), sites_.data(),
                        one_way_.data()});
    int64_t one_way = -1;
    one_way_.download(&one_way, 1, stream);
    check(cudaStreamSynchronize(stream), "pairing neighbours");
    if (one_way >= 0)
        fail(Status::argument, "atom ", one_way >> 32, " lists atom ", one_way & 0xffffffff,
             " as its neighbour, but not the other way round; list each pair in both directions");
}

}  // namespace mlff::gpu
