// SPDX-License-Identifier: MIT
// Neighbour lists on the GPU: the same pairs as NeighborList, in the same order and to the last bit. Positions are read
// from the device, and edges stay there. Options, reuse rule and errors are the same.
//
// Steps without host synchronisation. A search needs the host: it chooses the grid from a survey of the atoms, and may
// allocate memory. A step that reuses the candidates does not: `enqueue_reuse` only launches kernels, and can be
// captured in a CUDA graph together with the kernels that use the edges. Its arrays cannot overflow, because the edges
// are a subset of the candidates, and the arrays have room for all of these (`edge_capacity`). It cannot search: if
// atoms have moved too far, report->search_needed is 1 and there are no edges, so the step is invalid. The host may
// read the report after any number of steps. It then returns to the last valid state, calls `update`, and replays. A
// graph must be captured again when `generation` has changed: an array has moved, or the cell or the number of atoms
// has changed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "core/system_view.h"
#include "neighbors/listed_edges.h"
#include "neighbors/neighbor_list.h"

namespace mlff {

// The result of a step. It is on the device, for later kernels of the same stream.
struct GpuNeighborReport {
    int64_t edge_count = 0;
    int64_t search_needed = 0;  // 1: pairs within the cutoff might be missing, so there are no edges
};

// Device pointers; null if the array is not wanted. Edges are grouped by receiver, as in Edges. `first` and `reverse`
// have 64 bits as there: 2^31 edges are 25 million atoms of water at 6 angstrom, which a large GPU can hold.
template <class Real>
struct GpuEdges {
    int64_t atom_count = 0;
    int64_t edge_capacity = 0;  // size of the arrays; report->edge_count stays below or equal until the next search
    const GpuNeighborReport* report = nullptr;
    const int64_t* first = nullptr;    // [atom_count + 1]
    const int32_t* sender = nullptr;   // [edge]
    const int32_t* shift = nullptr;    // [edge][3]
    const Real* vector = nullptr;      // [edge][3], receiver to neighbour, angstrom
    const Real* distance = nullptr;    // [edge]
    const int64_t* reverse = nullptr;  // [edge]: the same pair in the opposite direction, with the opposite shift

    bool operator==(const GpuEdges&) const = default;
};

// The arrays with an entry per candidate, which are nearly all of a list's memory.
struct GpuNeighborMemory {
    int64_t held_bytes = 0;
    int64_t needed_bytes = 0;
};

// Real is double or float. Vectors and distances are computed in double precision and rounded once. Used by one thread
// at a time, always with the same device current. `stream` is a cudaStream_t; null is the default stream. The caller
// orders calls on different streams.
template <class Real>
class GpuNeighborList {
public:
    // Throws Error{argument} like NeighborList, and Error{device} without a usable GPU or in builds without CUDA.
    explicit GpuNeighborList(const NeighborOptions& options);
    ~GpuNeighborList();
    GpuNeighborList(GpuNeighborList&&) noexcept;

    // Updates `edges()` for these atoms. `system.positions` is a device pointer; the rest is read on the host. Waits
    // for the stream once to decide whether the candidates can be reused, and three times in a search. Throws what
    // NeighborList::update throws, Error{memory} if the GPU has too little memory, and Error{device}; the list is then
    // empty, and the next update searches.
    void update(const SystemView& system, void* stream);

    // True if the candidates belong to a system with this atom count and cell, so that enqueue_reuse() is valid until
    // atoms have moved too far.
    bool can_reuse(const SystemView& system) const;

    // update() when the candidates are known not to be reusable.
    void search(const SystemView& system, void* stream);

    // After a search, for the atoms of that search: an order in which atoms that follow each other are near each other,
    // as compact runs of 32. Later searches and set_candidates() forget it.
    void sort_into_runs(const SystemView& system, void* stream);
    const int32_t* runs() const;  // [atom], on the device; nullptr if there is none

    // Called in every search when the number of candidates is known and before memory for them is allocated. May throw
    // to reject the search.
    void set_admission(std::function<void(int64_t candidate_count, const GpuNeighborMemory&)> admit);
    int64_t held_bytes() const;  // GpuNeighborMemory
    GpuNeighborMemory memory_for(int64_t candidate_count) const;

    // Uses the caller's candidates instead of a search. The list has the neighbours of the first atoms, and every pair
    // of these in both directions. The other atoms (ghosts) have no list; their edges come from atoms that list them.
    // For atoms without a cell. enqueue_reuse() then uses these candidates, however far atoms have moved, until the
    // next update or search; can_reuse() is false. Edges exist after enqueue_reuse(). Waits for the stream. Throws
    // Error{argument} for a malformed list, and what a search throws.
    void set_candidates(int64_t atom_count, const ListedNeighbors& list, void* stream);
    bool has_listed_candidates() const;           // set by set_candidates()
    int64_t read_edge_count(void* stream) const;  // after enqueue_reuse(); waits for the stream

    // Enqueues a step that reuses the candidates of the last update, for the same atoms, cell and periodic directions;
    // see above. Throws Error{argument} if there are none: no skin, or the last update failed. Sets *cleared on the
    // device to 0, for flags of later kernels.
    void enqueue_reuse(const double* positions, void* stream, int* cleared = nullptr);

    const GpuEdges<Real>& edges() const;
    int64_t edge_count() const;  // at the last update
    const NeighborOptions& options() const;
    bool was_reused() const;      // by the last update
    int64_t build_count() const;  // searches so far
    // The atoms of the last search, only with a skin: positions [atom][3] on the device, and the cell.
    const double* searched_positions() const;
    const Mat3& searched_cell() const;
    int64_t generation() const;  // graphs captured at another value are invalid

private:
    struct State;
    std::unique_ptr<State> state_;
};

extern template class GpuNeighborList<double>;
extern template class GpuNeighborList<float>;

}  // namespace mlff
