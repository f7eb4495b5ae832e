// SPDX-License-Identifier: MIT
#include "gpu/neighbors/gpu_neighbor_list.h"

#include <limits>
#include <type_traits>
#include <utility>

#include "core/error.h"
#include "gpu/neighbors/candidate_search.h"
#include "gpu/neighbors/edge_selection.h"
#include "gpu/neighbors/exclusive_scan.h"
#include "gpu/neighbors/listed_candidates.h"
#include "gpu/neighbors/sorted_sites.h"
#include "gpu/runtime/cuda_check.h"
#include "gpu/runtime/device_buffer.h"
#include "gpu/runtime/reduction.cuh"

namespace mlff {

using namespace gpu;

template <class Real>
struct GpuNeighborList<Real>::State {
    explicit State(const NeighborOptions& wanted) : options(wanted) {
        device_report.resize_discard(1, "neighbour lists");
        displacements.resize_discard(kMostReductionBlocks + 1, "neighbour lists");
    }

    bool may_reuse(const SystemView& system) const {
        return has_candidates && !is_listed && system.atom_count == selection.atom_count &&
               system.cell == selection.cell && system.periodic == searched_periodic;
    }
    void enqueue_reuse(const double* positions, int* cleared, cudaStream_t stream);
    void search(const SystemView& system, cudaStream_t stream);
    void find_candidates(const SystemView& system, cudaStream_t stream);
    void set_candidates(int64_t atom_count, const ListedNeighbors& list, cudaStream_t stream);
    void resize_edges(int64_t atom_count, int64_t capacity, cudaStream_t stream);
    void clear_edges(cudaStream_t stream);
    template <class Candidates>
    void describe_selection(int64_t atom_count, const Mat3& cell, double skin, Site* at, const Candidates& found);
    GpuNeighborMemory memory_for(int64_t candidate_count, bool of_listed);
    void describe_edges();

    // Calls visit(buffer, numbers per candidate).
    template <class Visit>
    void for_each_edge_array(const Visit& visit) {
        visit(sender, 1);
        if (options.want_shifts) visit(shift, 3);
        if (options.want_vectors) visit(vector, 3);
        if (options.want_distances) visit(distance, 1);
        if (options.want_reverse) visit(reverse, 1);
    }

    NeighborOptions options;
    std::function<void(int64_t, const GpuNeighborMemory&)> admit;
    GpuEdges<Real> edges;
    GpuNeighborReport report;  // from the last update
    bool was_reused = false;
    int64_t build_count = 0;
    int64_t generation = 0;

    SortedSites sites;
    CandidateSearch candidates;
    ListedCandidates listed;
    ExclusiveScan scan;
    DeviceBuffer<LargestDisplacements> displacements;
    DeviceBuffer<int32_t> count;
    DeviceBuffer<uint32_t> marks;
    DeviceBuffer<GpuNeighborReport> device_report;
    PinnedValue<GpuNeighborReport> host_report;
    DeviceBuffer<int64_t> first;
    DeviceBuffer<int32_t> sender;
    DeviceBuffer<int32_t> shift;
    DeviceBuffer<Real> vector;
    DeviceBuffer<Real> distance;
    DeviceBuffer<int64_t> reverse;

    // The system of the last search; kept only with a skin.
    bool has_candidates = false;
    bool is_listed = false;  // the caller provided the candidates
    bool has_runs = false;
    DeviceBuffer<double> searched_positions;
    std::array<bool, 3> searched_periodic{};

    Selection<Real> selection;
};

template <class Real>
void GpuNeighborList<Real>::State::enqueue_reuse(const double* positions, int* cleared, cudaStream_t stream) {
    if (selection.atom_count > 0)
        select_edges_of_moved(selection, positions, cleared, scan, stream);
    else if (cleared)
        check(cudaMemsetAsync(cleared, 0, sizeof *cleared, stream), "clearing a flag");
}

template <class Real>
void GpuNeighborList<Real>::State::search(const SystemView& system, cudaStream_t stream) {
    has_candidates = is_listed = has_runs = false;
    check_atom_count(system.atom_count);
    if (system.atom_count > 0)
        find_candidates(system, stream);
    else
        make_lattice(system);  // rejects an invalid cell, even without atoms
    resize_edges(system.atom_count, system.atom_count > 0 ? candidates.total() : 0, stream);
    describe_selection(system.atom_count, system.cell, options.skin, sites.sites(), candidates);

    // No atom has moved yet.
    check(cudaMemsetAsync(displacements.data() + kMostReductionBlocks, 0, sizeof(LargestDisplacements), stream),
          "clearing displacements");
    if (system.atom_count > 0) {
        select_edges(selection, scan, stream);
    } else {
        clear_edges(stream);
    }
    ++build_count;
    has_candidates = options.skin > 0;
    searched_periodic = system.periodic;
}

template <class Real>
template <class Candidates>
void GpuNeighborList<Real>::State::describe_selection(int64_t atom_count, const Mat3& cell, double skin, Site* at,
                                                      const Candidates& found) {
    const Selection<Real> before = selection;
    selection = {atom_count,
                 cell,
                 options.cutoff,
                 skin,
                 at,
                 searched_positions.data(),
                 found.first(),
                 found.candidates(),
                 found.reverse(),
                 displacements.data(),
                 count.data(),
                 marks.data(),
                 device_report.data(),
                 first.data(),
                 sender.data(),
                 shift.data(),
                 vector.data(),
                 distance.data(),
                 reverse.data()};
    if (!(selection == before)) ++generation;
}

// The caller's candidates never become too old: the skin is infinite, and earlier positions do not matter.
template <class Real>
void GpuNeighborList<Real>::State::set_candidates(int64_t atom_count, const ListedNeighbors& list,
                                                  cudaStream_t stream) {
    has_candidates = is_listed = has_runs = false;
    check_atom_count(atom_count);
    const auto admit_count = [&](int64_t candidate_count) {
        if (admit) admit(candidate_count, memory_for(candidate_count, true));
    };
    listed.set(atom_count, list, admit_count, stream);
    resize_edges(atom_count, listed.total(), stream);
    searched_positions.resize_discard(3 * atom_count, "positions");
    searched_positions.clear(stream);
    describe_selection(atom_count, Mat3{}, std::numeric_limits<double>::infinity(), listed.sites(), listed);
    if (atom_count == 0) clear_edges(stream);
    ++build_count;
    has_candidates = is_listed = true;
}

template <class Real>
void GpuNeighborList<Real>::State::find_candidates(const SystemView& system, cudaStream_t stream) {
    sites.build(system, options.cutoff + options.skin, options.is_brute_force, stream);
    const auto admit_count = [&](int64_t count) {
        if (admit) admit(count, memory_for(count, false));
    };
    candidates.find(sites, options.half, options.want_reverse, admit_count, stream);
    if (!(options.skin > 0)) return;
    searched_positions.resize_discard(3 * system.atom_count, "positions");
    check(
        cudaMemcpyAsync(searched_positions.data(), system.positions,
                        static_cast<size_t>(3 * system.atom_count) * sizeof(double), cudaMemcpyDeviceToDevice, stream),
        "copying positions");
}

template <class Real>
void GpuNeighborList<Real>::State::resize_edges(int64_t atom_count, int64_t capacity, cudaStream_t stream) {
    constexpr const char* kPurpose = "the edges";
    first.resize_discard(atom_count + 1, kPurpose);
    count.resize_discard(atom_count + 1, kPurpose);
    check(cudaMemsetAsync(count.data() + atom_count, 0, sizeof(int32_t), stream), "clearing a count");
    marks.resize_discard(mark_count(capacity, atom_count), kPurpose);
    for_each_edge_array([&](auto& array, int64_t width) { array.resize_discard(width * capacity, kPurpose); });
}

// Without atoms there are no kernels that could write this.
template <class Real>
void GpuNeighborList<Real>::State::clear_edges(cudaStream_t stream) {
    check(cudaMemsetAsync(first.data(), 0, sizeof(int64_t), stream), "clearing edges");
    check(cudaMemsetAsync(device_report.data(), 0, sizeof(GpuNeighborReport), stream), "clearing edges");
}

// Buffers never shrink, and grow with some reserve.
template <class Real>
GpuNeighborMemory GpuNeighborList<Real>::State::memory_for(int64_t candidate_count, bool of_listed) {
    GpuNeighborMemory memory;
    const auto add_for = [&](auto& array, int64_t count) {
        const int64_t item_bytes = std::remove_reference_t<decltype(array)>::kItemBytes;
        memory.held_bytes += array.capacity() * item_bytes;
        memory.needed_bytes += (count > array.capacity() ? count + count / 8 : array.capacity()) * item_bytes;
    };
    const auto add = [&](int64_t candidates_there) {
        return [&, candidates_there](auto& array, int64_t width) { add_for(array, width * candidates_there); };
    };
    candidates.for_each_array(options.want_reverse, add(of_listed ? 0 : candidate_count));
    listed.for_each_array(add(of_listed ? candidate_count : 0));
    for_each_edge_array(add(candidate_count));
    return memory;
}

template <class Real>
void GpuNeighborList<Real>::State::describe_edges() {
    edges.atom_count = selection.atom_count;
    edges.edge_capacity = sender.size();
    edges.report = device_report.data();
    edges.first = first.data();
    edges.sender = sender.data();
    edges.shift = shift.data();
    edges.vector = vector.data();
    edges.distance = distance.data();
    edges.reverse = reverse.data();
}

template <class Real>
GpuNeighborList<Real>::GpuNeighborList(const NeighborOptions& options) {
    check_options(options);
    state_ = std::make_unique<State>(options);
}
template <class Real>
GpuNeighborList<Real>::~GpuNeighborList() = default;
template <class Real>
GpuNeighborList<Real>::GpuNeighborList(GpuNeighborList&&) noexcept = default;

template <class Real>
void GpuNeighborList<Real>::update(const SystemView& system, void* stream) {
    State& state = *state_;
    const auto cuda_stream = static_cast<cudaStream_t>(stream);
    state.edges = {};
    state.report = {};
    state.was_reused = false;
    if (state.may_reuse(system)) {
        state.enqueue_reuse(system.positions, nullptr, cuda_stream);
        state.report = state.host_report.read(state.device_report.data(), cuda_stream);
        state.was_reused = state.report.search_needed == 0;
    }
    if (!state.was_reused) return search(system, stream);
    state.describe_edges();
}

template <class Real>
bool GpuNeighborList<Real>::can_reuse(const SystemView& system) const {
    return state_->may_reuse(system);
}

template <class Real>
void GpuNeighborList<Real>::search(const SystemView& system, void* stream) {
    State& state = *state_;
    const auto cuda_stream = static_cast<cudaStream_t>(stream);
    state.edges = {};
    state.report = {};
    state.was_reused = false;
    state.search(system, cuda_stream);
    state.report = state.host_report.read(state.device_report.data(), cuda_stream);
    state.describe_edges();
}

template <class Real>
void GpuNeighborList<Real>::sort_into_runs(const SystemView& system, void* stream) {
    if (system.atom_count == 0) return;
    state_->sites.sort_into_runs(system, static_cast<cudaStream_t>(stream));
    state_->has_runs = true;
}

template <class Real>
const int32_t* GpuNeighborList<Real>::runs() const {
    return state_->has_runs ? state_->sites.runs() : nullptr;
}

template <class Real>
void GpuNeighborList<Real>::set_admission(std::function<void(int64_t, const GpuNeighborMemory&)> admit) {
    state_->admit = std::move(admit);
}

template <class Real>
int64_t GpuNeighborList<Real>::held_bytes() const {
    return state_->memory_for(0, false).held_bytes;
}

template <class Real>
GpuNeighborMemory GpuNeighborList<Real>::memory_for(int64_t candidate_count) const {
    return state_->memory_for(candidate_count, false);
}

template <class Real>
void GpuNeighborList<Real>::set_candidates(int64_t atom_count, const ListedNeighbors& list, void* stream) {
    State& state = *state_;
    state.edges = {};
    state.report = {};
    state.was_reused = false;
    state.set_candidates(atom_count, list, static_cast<cudaStream_t>(stream));
    state.describe_edges();
}

template <class Real>
bool GpuNeighborList<Real>::has_listed_candidates() const {
    return state_->is_listed;
}

template <class Real>
int64_t GpuNeighborList<Real>::read_edge_count(void* stream) const {
    return state_->host_report.read(state_->device_report.data(), static_cast<cudaStream_t>(stream)).edge_count;
}

template <class Real>
void GpuNeighborList<Real>::enqueue_reuse(const double* positions, void* stream, int* cleared) {
    if (!state_->has_candidates)
        fail(Status::argument, "there are no candidates to reuse: first update the list, with a skin");
    state_->enqueue_reuse(positions, cleared, static_cast<cudaStream_t>(stream));
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
    return state_->was_reused;
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
    return state_->selection.cell;
}
template <class Real>
int64_t GpuNeighborList<Real>::generation() const {
    return state_->generation;
}

template class GpuNeighborList<double>;
template class GpuNeighborList<float>;

}  // namespace mlff
