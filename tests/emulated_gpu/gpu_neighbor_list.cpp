// SPDX-License-Identifier: MIT
// The GPU's neighbour list by way of the host's, for the emulated GPU: positions "on the device" are the host's memory.
#include "neighbors/gpu/gpu_neighbor_list.h"

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
    GpuNeighborReport report;
    GpuEdges<Real> edges;

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
    return state_->options.skin > 0 && state_->build_count > 0 && system.atom_count == state_->last.atom_count && system.cell == state_->last.cell &&
           system.periodic == state_->last.periodic;
}
template <class Real>
void GpuNeighborList<Real>::search(const SystemView& system, void*) {
    state_->list.update(system, state_->team);
    const Edges& found = state_->list.edges();
    const int64_t capacity = 2 * found.edge_count + 64;
    if (state_->admit) state_->admit(capacity, {0, 0});
    state_->last = system;
    state_->searched_positions.assign(system.positions, system.positions + 3 * system.atom_count);
    ++state_->build_count;
    ++state_->generation;
    state_->first.assign(static_cast<size_t>(system.atom_count) + 1, -1);
    state_->sender.assign(static_cast<size_t>(capacity), -1);
    state_->reverse.assign(static_cast<size_t>(capacity), -1);
    state_->vector.assign(static_cast<size_t>(3 * capacity), NAN);
    state_->distance.assign(static_cast<size_t>(capacity), NAN);
    state_->take(found);
    state_->edges = {system.atom_count,      capacity,  &state_->report,        state_->first.data(),    state_->sender.data(),
                     nullptr, state_->vector.data(), state_->distance.data(), state_->reverse.data()};
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
void GpuNeighborList<Real>::enqueue_reuse(const double* positions, void*) {
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
