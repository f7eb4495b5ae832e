// SPDX-License-Identifier: MIT
// Builds without CUDA: a list cannot be made, so nothing else is ever called.
#include "core/error.h"
#include "neighbors/gpu/gpu_neighbor_list.h"

namespace mlff {
namespace {

[[noreturn]] void refuse() { fail(Status::device, "this build of mlff has no CUDA"); }

}  // namespace

template <class Real>
struct GpuNeighborList<Real>::State {};

template <class Real>
GpuNeighborList<Real>::GpuNeighborList(const NeighborOptions& options) {
    check_options(options);
    refuse();
}
template <class Real>
GpuNeighborList<Real>::~GpuNeighborList() = default;
template <class Real>
GpuNeighborList<Real>::GpuNeighborList(GpuNeighborList&&) noexcept = default;
template <class Real>
void GpuNeighborList<Real>::update(const SystemView&, void*) {
    refuse();
}
template <class Real>
bool GpuNeighborList<Real>::can_reuse(const SystemView&) const {
    refuse();
}
template <class Real>
void GpuNeighborList<Real>::search(const SystemView&, void*) {
    refuse();
}
template <class Real>
void GpuNeighborList<Real>::set_admission(std::function<void(int64_t, const GpuNeighborMemory&)>) {
    refuse();
}
template <class Real>
int64_t GpuNeighborList<Real>::held_bytes() const {
    refuse();
}
template <class Real>
GpuNeighborMemory GpuNeighborList<Real>::memory_for(int64_t) const {
    refuse();
}
template <class Real>
void GpuNeighborList<Real>::set_candidates(int64_t, const ListedNeighbors&, void*) {
    refuse();
}
template <class Real>
bool GpuNeighborList<Real>::has_listed_candidates() const {
    refuse();
}
template <class Real>
int64_t GpuNeighborList<Real>::read_edge_count(void*) const {
    refuse();
}
template <class Real>
void GpuNeighborList<Real>::enqueue_reuse(const double*, void*) {
    refuse();
}
template <class Real>
const GpuEdges<Real>& GpuNeighborList<Real>::edges() const {
    refuse();
}
template <class Real>
int64_t GpuNeighborList<Real>::edge_count() const {
    refuse();
}
template <class Real>
const NeighborOptions& GpuNeighborList<Real>::options() const {
    refuse();
}
template <class Real>
bool GpuNeighborList<Real>::was_reused() const {
    refuse();
}
template <class Real>
int64_t GpuNeighborList<Real>::build_count() const {
    refuse();
}
template <class Real>
const double* GpuNeighborList<Real>::searched_positions() const {
    refuse();
}
template <class Real>
const Mat3& GpuNeighborList<Real>::searched_cell() const {
    refuse();
}
template <class Real>
int64_t GpuNeighborList<Real>::generation() const {
    refuse();
}

template class GpuNeighborList<double>;
template class GpuNeighborList<float>;

}  // namespace mlff
