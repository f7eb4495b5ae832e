// SPDX-License-Identifier: MIT
#include "neighbors/neighbor_list.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "neighbors/cell_list.h"
#include "neighbors/displacements.h"
#include "neighbors/edge_arrays.h"
#include "neighbors/pair_search.h"
#include "neighbors/pair_selection.h"

namespace mlff {

struct NeighborList::State {
    NeighborOptions options;
    Edges edges;
    bool was_reused = false;
    int64_t build_count = 0;

    CellList cells;
    PairSearch search;
    PairList found;     // without skin: the pairs; with skin: the candidates
    PairList selected;  // the candidates within the cutoff
    EdgeArrays arrays;

    // The system of the last search; kept only with a skin.
    bool has_candidates = false;
    Buffer<double> searched_positions;
    Mat3 searched_cell{};
    std::array<bool, 3> searched_periodic{};

    bool can_reuse(const SystemView& system) const;
    int64_t most_pairs_in_memory() const;
    void find_pairs(const SystemView& system, ThreadTeam& team);
};

void check_options(const NeighborOptions& options) {
    if (!(options.cutoff > 0) || !std::isfinite(options.cutoff))
        fail(Status::argument, "the cutoff must be positive and finite, not ", options.cutoff);
    if (!(options.skin >= 0) || !std::isfinite(options.skin))
        fail(Status::argument, "the skin must be zero or positive and finite, not ", options.skin);
    if (options.half && options.want_reverse) fail(Status::argument, "a half list has no reverse edges");
}

NeighborList::NeighborList(const NeighborOptions& options) : state_(std::make_unique<State>()) {
    check_options(options);
    state_->options = options;
}
NeighborList::~NeighborList() = default;
NeighborList::NeighborList(NeighborList&&) noexcept = default;

const Edges& NeighborList::edges() const { return state_->edges; }
const NeighborOptions& NeighborList::options() const { return state_->options; }
bool NeighborList::was_reused() const { return state_->was_reused; }
int64_t NeighborList::build_count() const { return state_->build_count; }

void NeighborList::update(const SystemView& system, ThreadTeam& team) {
    State& state = *state_;
    const NeighborOptions& options = state.options;
    state.edges = {};
    state.was_reused = state.can_reuse(system);
    if (state.was_reused)
        state.cells.move_sites(system, team);
    else
        state.find_pairs(system, team);
    const PairList* pairs = &state.found;
    if (options.skin > 0) {
        select_pairs(state.cells, state.found, system.cell, options.cutoff * options.cutoff, team, state.selected);
        pairs = &state.selected;
    }
    state.edges = state.arrays.fill(state.cells, *pairs, system.cell, options, team);
}

// NaN positions lead to a search, which rejects them.
bool NeighborList::State::can_reuse(const SystemView& system) const {
    const auto coordinates = static_cast<size_t>(3 * system.atom_count);
    if (!has_candidates || coordinates != searched_positions.size() || system.cell != searched_cell ||
        system.periodic != searched_periodic)
        return false;
    LargestDisplacements displacements;
    for (size_t k = 0; k < coordinates; k += 3)
        displacements.add(squared_length(edge_vector(&searched_positions[k], system.positions + k, {0, 0, 0})));
    return displacements.allow_reuse(options.skin);
}

// Each takes its place among the pairs found, and one in all arrays that are wanted.
int64_t NeighborList::State::most_pairs_in_memory() const {
    if (options.memory_bytes <= 0) return std::numeric_limits<int64_t>::max();
    size_t bytes = sizeof(int32_t) + sizeof(int32_t);
    if (options.skin > 0) bytes += sizeof(int32_t);
    if (options.want_shifts || options.want_reverse) bytes += 3 * sizeof(int32_t);
    if (options.want_vectors) bytes += 3 * sizeof(double);
    if (options.want_distances) bytes += sizeof(double);
    if (options.want_reverse) bytes += sizeof(int64_t);
    return options.memory_bytes / static_cast<int64_t>(bytes);
}

void NeighborList::State::find_pairs(const SystemView& system, ThreadTeam& team) {
    has_candidates = false;
    cells.build(system, options.cutoff + options.skin, options.is_brute_force, team);
    PairRule rule;
    rule.cutoff_squared = options.cutoff * options.cutoff;
    rule.exact = !(options.skin > 0);
    rule.half = options.half;
    const int64_t most_in_memory = most_pairs_in_memory(), most_at_all = most_pairs(system.atom_count);
    rule.most_pairs = std::min(most_in_memory, most_at_all);
    const double fewest = options.half ? cells.grid.fewest_pairs / 2 : cells.grid.fewest_pairs;
    const bool has_too_many = fewest > static_cast<double>(rule.most_pairs);
    if (has_too_many || !search.find(cells, system.cell, rule, team, found)) {
        if (most_at_all < most_in_memory) refuse_crowd(system.atom_count, cells.grid.reach);
        fail(Status::memory, "the ", system.atom_count, " atoms have more than ", most_in_memory, " pairs within ",
             cells.grid.reach, " angstrom (cutoff plus skin), whose list does not fit into ",
             options.memory_bytes >> 20, " MiB of memory");
    }
    ++build_count;
    if (!(options.skin > 0)) return;
    searched_positions.resize_discard(static_cast<size_t>(3 * system.atom_count));
    std::copy_n(system.positions, searched_positions.size(), searched_positions.data());
    searched_cell = system.cell;
    searched_periodic = system.periodic;
    has_candidates = true;
}

}  // namespace mlff
