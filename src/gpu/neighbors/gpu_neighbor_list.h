// SPDX-License-Identifier: MIT
// Neighbour lists on the GPU: the pairs of NeighborList, in the same order and to the last bit, from positions that are
// on the device to edges that stay there. Same options, same rule of reuse, same refusals.
//
// Steps without the host. A search has to talk to the host: the grid is chosen there from a survey of the atoms, and
// memory may have to grow. A step that reuses the candidates does not: `enqueue_reuse` only launches kernels, allocates
// nothing and can be captured in a CUDA graph together with what uses the edges. Its arrays cannot overflow, because
// edges are a subset of the candidates, and the arrays have room for all of these (`edge_capacity`). What it cannot do
// is search: if atoms have moved too far, report->search_needed is 1 and there are no edges, so the step does not
// count. The host looks at the report whenever it likes, after one step or after many, goes back to the last good
// state, calls `update`, and replays. A graph has to be captured again when `generation` has changed: an array was
// moved by growing, or the cell or the number of atoms is another.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "core/system_view.h"
#include "neighbors/listed_edges.h"
#include "neighbors/neighbor_list.h"

namespace mlff {

// What a step found out; on the device, for later kernels of the same stream to read.
struct GpuNeighborReport {
    int64_t edge_count = 0;
    int64_t search_needed = 0;  // 1: some pair within the cutoff might be missing, so there are no edges
};

// Device pointers; null where the array is not wanted. Edges are grouped by receiver as in Edges. `first` and `reverse`
// are 64 bits as there: 2^31 edges are 25 million atoms of water at 6 angstrom, which a large GPU can hold.
template <class Real>
struct GpuEdges {
    int64_t atom_count = 0;
    int64_t edge_capacity = 0;  // room in the arrays; until the next search report->edge_count is never more
    const GpuNeighborReport* report = nullptr;
    const int64_t* first = nullptr;    // [atom_count + 1]
    const int32_t* sender = nullptr;   // [edge]
    const int32_t* shift = nullptr;    // [edge][3]
    const Real* vector = nullptr;      // [edge][3], receiver to neighbour, angstrom
    const Real* distance = nullptr;    // [edge]
    const int64_t* reverse = nullptr;  // [edge]: the edge from the other end, with the opposite shift

    bool operator==(const GpuEdges&) const = default;
};

// Of the arrays with an entry for each candidate, which are nearly all of a list's memory.
struct GpuNeighborMemory {
    int64_t held_bytes = 0;
    int64_t needed_bytes = 0;
};

// Real is double or float. Vectors and distances are computed in double precision and rounded once.
// One thread at a time, always with the same device current. `stream` is a cudaStream_t; null is the default stream.
// Calls with different streams are for the caller to keep in order.
template <class Real>
class GpuNeighborList {
public:
    // Throws Error{argument} as NeighborList does, and Error{device} without a usable GPU or in builds without CUDA.
    explicit GpuNeighborList(const NeighborOptions& options);
    ~GpuNeighborList();
    GpuNeighborList(GpuNeighborList&&) noexcept;

    // Makes `edges()` right for these atoms; `system.positions` is a device pointer, the rest is read on the host.
    // Waits for the stream once to see whether the candidates can be reused, and three times in a search. Throws what
    // NeighborList::update throws, Error{memory} if the GPU has too little, Error{device}; the list then is empty and
    // the next update searches afresh.
    void update(const SystemView& system, void* stream);

    // Whether the candidates are those of such a system, so that enqueue_reuse() serves it while its atoms are near
    // enough.
    bool can_reuse(const SystemView& system) const;

    // update() where it is known already that the candidates cannot be reused.
    void search(const SystemView& system, void* stream);

    // Called in every search when the number of candidates is known and memory for them is not yet taken; may throw to
    // refuse.
    void set_admission(std::function<void(int64_t candidate_count, const GpuNeighborMemory&)> admit);
    int64_t held_bytes() const;  // GpuNeighborMemory
    GpuNeighborMemory memory_for(int64_t candidate_count) const;

    // Candidates that the caller has found, instead of a search: those of the first atoms, of which every pair is
    // listed in both directions. The rest have no list of their own; their edges are those from atoms that list them.
    // For atoms without a cell. enqueue_reuse() then takes these candidates, however far atoms have moved, until the
    // next update or search; can_reuse() is false. Edges are there after enqueue_reuse(). Waits for the stream. Throws
    // Error{argument} for a list that is none, and what a search throws.
    void set_candidates(int64_t atom_count, const ListedNeighbors& list, void* stream);
    bool has_listed_candidates() const;           // these are the caller's
    int64_t read_edge_count(void* stream) const;  // after enqueue_reuse(); waits for the stream

    // Enqueues a step that reuses the candidates of the last update, for the same atoms, cell and periodic directions;
    // see above. Throws Error{argument} if there are none: no skin, or the last update failed.
    void enqueue_reuse(const double* positions, void* stream);

    const GpuEdges<Real>& edges() const;
    int64_t edge_count() const;  // at the last update
    const NeighborOptions& options() const;
    bool was_reused() const;      // by the last update
    int64_t build_count() const;  // searches so far
    // The atoms of the last search, with skin only: positions [atom][3] on the device, and their cell.
    const double* searched_positions() const;
    const Mat3& searched_cell() const;
    int64_t generation() const;  // graphs captured at another value are void

private:
    struct State;
    std::unique_ptr<State> state_;
};

extern template class GpuNeighborList<double>;
extern template class GpuNeighborList<float>;

}  // namespace mlff
