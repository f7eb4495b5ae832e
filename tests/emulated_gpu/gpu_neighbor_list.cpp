// SPDX-License-Identifier: MIT
// The GPU's neighbour list by way of the host's, for the emulated GPU: positions "on the device" are the host's memory.
#include "gpu/neighbors/gpu_neighbor_list.h"
#include "neighbors/listed_by.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace mlff {

template <class Real>
struct GpuNeighborList<Real>::State {
    explicit State(const NeighborOptions& options_in) : options(options_in), list(options_in) {}

    NeighborOptions options;
    NeighborList list;
    ThreadTeam team{1};
    SystemView last;
    std::function<void(int64_t, const GpuNeighborMemory&)> admit;
    int64_t build_count = 0, generation = 0;
    std::vector<int64_t> first, reverse;
    std::vector<int32_t> sender;
    std::vector<Real> vector, distance;
    std::vector<double> searched_positions;
    std::vector<int32_t> runs;
    GpuNeighborReport report;
    GpuEdges<Real> edges;
    bool is_listed = false;
    std::vector<int64_t> candidate_first;
    std::vector<int32_t> candidates;

    void make_room(int64_t atom_count, int64_t capacity) {
        ++build_count;
        ++generation;
        first.assign(static_cast<size_t>(atom_count) + 1, -1);
        sender.assign(static_cast<size_t>(capacity), -1);
        reverse.assign(static_cast<size_t>(capacity), -1);
        vector.assign(static_cast<size_t>(3 * capacity), NAN);
        distance.assign(static_cast<size_t>(capacity), NAN);
        edges = {atom_count, capacity,      &report,         first.data(),  sender.data(),
                 nullptr,    vector.data(), distance.data(), reverse.data()};
    }

    void select(const double* positions) {
        size_t edge = 0;
        first[0] = 0;
        for (size_t atom = 0; atom + 1 < first.size(); ++atom) {
            for (auto c = static_cast<size_t>(candidate_first[atom]);
                 c < static_cast<size_t>(candidate_first[atom + 1]); ++c) {
                const Vec3 between =
                    edge_vector(positions + 3 * atom, positions + 3 * static_cast<size_t>(candidates[c]), {0, 0, 0});
                if (!(squared_length(between) < options.cutoff * options.cutoff)) continue;
                sender[edge] = candidates[c];
                for (size_t k = 0; k < 3; ++k) vector[3 * edge + k] = static_cast<Real>(between[k]);
                distance[edge++] = static_cast<Real>(std::sqrt(squared_length(between)));
            }
            first[atom + 1] = static_cast<int64_t>(edge);
        }
        for (size_t atom = 0; atom + 1 < first.size(); ++atom)
            for (int64_t e = first[atom]; e < first[atom + 1]; ++e) {
                const auto other = static_cast<size_t>(sender[static_cast<size_t>(e)]);
                reverse[static_cast<size_t>(e)] =
                    std::find(sender.begin() + first[other], sender.begin() + first[other + 1],
                              static_cast<int32_t>(atom)) -
                    sender.begin();
            }
        report = {static_cast<int64_t>(edge), 0};
    }

    void take(const Edges& found) {
        report = {found.edge_count, 0};
        std::copy_n(found.first, found.atom_count + 1, first.data());
        std::copy_n(found.sender, found.edge_count, sender.data());
        std::copy_n(found.reverse, found.edge_count, reverse.data());
        std::copy_n(found.vector, 3 * found.edge_count, vector.data());
        std::copy_n(found.distance, found.edge_count, distance.data());
    }
};

template <class Real>
GpuNeighborList<Real>::GpuNeighborList(const NeighborOptions& options) : state_(std::make_unique<State>(options)) {}
template <class Real>
GpuNeighborList<Real>::~GpuNeighborList() = default;
template <class Real>
GpuNeighborList<Real>::GpuNeighborList(GpuNeighborList&&) noexcept = default;
template <class Real>
void GpuNeighborList<Real>::update(const SystemView& system, void* stream) {
    search(system, stream);
}
template <class Real>
bool GpuNeighborList<Real>::can_reuse(const SystemView& system) const {
    return state_->options.skin > 0 && state_->build_count > 0 && !state_->is_listed &&
           system.atom_count == state_->last.atom_count && system.cell == state_->last.cell &&
           system.periodic == state_->last.periodic;
}
template <class Real>
void GpuNeighborList<Real>::search(const SystemView& system, void*) {
    state_->list.update(system, state_->team);
    const Edges& found = state_->list.edges();
    const int64_t capacity = 2 * found.edge_count + 64;
    if (state_->admit) state_->admit(capacity, {0, 0});
    state_->last = system;
    state_->is_listed = false;
    state_->searched_positions.assign(system.positions, system.positions + 3 * system.atom_count);
    state_->make_room(system.atom_count, capacity);
    state_->take(found);
}
// Any order will do: this one is not that of the atoms.
template <class Real>
void GpuNeighborList<Real>::sort_into_runs(const SystemView& system, void*) {
    state_->runs.clear();
    for (int64_t atom = system.atom_count; atom > 0; --atom) state_->runs.push_back(static_cast<int32_t>(atom - 1));
}
template <class Real>
const int32_t* GpuNeighborList<Real>::runs() const {
    return state_->runs.empty() || state_->is_listed ? nullptr : state_->runs.data();
}
template <class Real>
void GpuNeighborList<Real>::set_candidates(int64_t atom_count, const ListedNeighbors& list, void*) {
    check_listed_neighbors(atom_count, list);
    ListedBy rest;
    rest.find(atom_count, list);
    const int64_t own_total = list.first[list.receiver_count];
    state_->candidate_first.assign(list.first, list.first + list.receiver_count);
    for (const int64_t first : rest.first()) state_->candidate_first.push_back(own_total + first);
    state_->candidates.assign(list.neighbors, list.neighbors + own_total);
    state_->candidates.insert(state_->candidates.end(), rest.neighbors().begin(), rest.neighbors().end());
    const auto total = static_cast<int64_t>(state_->candidates.size());
    if (state_->admit) state_->admit(total, {0, 0});
    state_->make_room(atom_count, total);
    state_->is_listed = true;
}
template <class Real>
bool GpuNeighborList<Real>::has_listed_candidates() const {
    return state_->is_listed;
}
template <class Real>
int64_t GpuNeighborList<Real>::read_edge_count(void*) const {
    return state_->report.edge_count;
}
template <class Real>
void GpuNeighborList<Real>::set_admission(std::function<void(int64_t, const GpuNeighborMemory&)> admit) {
    state_->admit = std::move(admit);
}
template <class Real>
int64_t GpuNeighborList<Real>::held_bytes() const {
    return 0;
}
template <class Real>
GpuNeighborMemory GpuNeighborList<Real>::memory_for(int64_t) const {
    return {};
}
template <class Real>
void GpuNeighborList<Real>::enqueue_reuse(const double* positions, void*, int* cleared) {
    if (cleared) *cleared = 0;
    if (state_->is_listed) return state_->select(positions);
    SystemView system = state_->last;
    system.positions = positions;
    state_->list.update(system, state_->team);
    const Edges& found = state_->list.edges();
    if (found.edge_count <= state_->edges.edge_capacity && state_->list.was_reused()) return state_->take(found);
    state_->report = {0, 1};
    std::fill(state_->first.begin(), state_->first.end(), 0);
}
template <class Real>
const GpuEdges<Real>& GpuNeighborList<Real>::edges() const {
    return state_->edges;
}
template <class Real>
int64_t GpuNeighborList<Real>::edge_count() const {
    return state_->report.edge_count;
}
template <class Real>
const NeighborOptions& GpuNeighborList<Real>::options() const {
    return state_->options;
}
template <class Real>
bool GpuNeighborList<Real>::was_reused() const {
    return state_->list.was_reused();
}
template <class Real>
int64_t GpuNeighborList<Real>::build_count() const {
    return state_->build_count;
}
template <class Real>
const double* GpuNeighborList<Real>::searched_positions() const {
    return state_->searched_positions.data();
}
template <class Real>
const Mat3& GpuNeighborList<Real>::searched_cell() const {
    return state_->last.cell;
}
template <class Real>
int64_t GpuNeighborList<Real>::generation() const {
    return state_->generation;
}

template class GpuNeighborList<double>;
template class GpuNeighborList<float>;

}  // namespace mlff
