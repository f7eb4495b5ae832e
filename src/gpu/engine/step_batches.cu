// SPDX-License-Identifier: MIT
#include "gpu/engine/step_batches.h"

#include <algorithm>

namespace mlff::gpu {
namespace {

// The largest system in a batch. A larger one keeps the GPU busy alone, and the GPU finds its neighbours faster than
// the host.
constexpr int64_t kMostAtomsInBatch = 1024;
// The largest number of atoms in all systems of a batch, if the GPU's memory is large enough.
constexpr int64_t kMostBatchAtoms = 131072;
constexpr int64_t kEdgesPerAtom = 100;  // of a dense system, for the forecast of memory

}  // namespace

StepBatches::StepBatches(StepRun& run, int device) : run_(run), device_(device) {
    run_.memory().add_step_buffers([this](BufferList& list, const StepSize& size) {
        if (size.has_host_edges) uploaded_.list_buffers(list, size.atoms, size.edges);
    });
    const int64_t budget = run_.memory().budget();
    most_atoms_ = kMostBatchAtoms;
    while (most_atoms_ > 1 && run_.forecast_memory(most_atoms_, kEdgesPerAtom * most_atoms_).usual > budget)
        most_atoms_ /= 2;
}

bool StepBatches::can_batch(const SystemView& first, const SystemView& next) const {
    return std::max(first.atom_count, next.atom_count) <= kMostAtomsInBatch && run_.model().can_batch(first, next);
}

void StepBatches::evaluate_batch(std::span<const SystemView> systems, const Edges& edges,
                                 std::span<const Outputs> outputs, ThreadTeam& team) {
    const CurrentDevice current(device_);
    run_.leave_nothing_running([&] {
        if (edges.first)
            compute_with_edges(systems, edges, wanted_of(outputs), team);
        else
            compute_side_by_side(systems, wanted_of(outputs), team);
        run_.results().write(systems, outputs);
    });
}

void StepBatches::compute_with_edges(std::span<const SystemView> systems, const Edges& edges, const Wanted& wanted,
                                     ThreadTeam& team) {
    const StepSize size = {.atoms = edges.atom_count,
                           .edges = edges.edge_count,
                           .systems = static_cast<int64_t>(systems.size()),
                           .wanted = wanted,
                           .has_host_edges = true};
    run_.begin(size);
    run_.set_atoms(systems);
    run_.prepare(systems.front(), team);
    run_.reserve(size);
    double* positions = run_.host_positions();
    for (const SystemView& system : systems)
        positions = std::copy_n(system.positions, 3 * system.atom_count, positions);
    run_.upload_positions();
    uploaded_.upload(edges, run_.stream());
    run_.use_edges({0, size.edges, uploaded_.first(), uploaded_.sender(), uploaded_.vector(), uploaded_.distance(),
                    uploaded_.reverse()});
    run_.run({.size = size});
    run_.check_distances();
}

void StepBatches::compute_side_by_side(std::span<const SystemView> systems, const Wanted& wanted, ThreadTeam& team) {
    SystemView all = systems.front();
    all.atom_count = 0;
    for (const SystemView& system : systems) all.atom_count += system.atom_count;
    run_.begin({.atoms = all.atom_count, .systems = static_cast<int64_t>(systems.size()), .wanted = wanted});
    run_.set_atoms(systems);
    run_.prepare(systems.front(), team);
    const GpuNeighborList<double>& neighbors = run_.neighbors();
    if (placement_.holds(systems) && placed_build_ == neighbors.build_count() && neighbors.can_reuse(all)) {
        placement_.place(systems, run_.host_positions());
        if (run_.compute_with_candidates()) return;
    }
    placement_.choose(systems, neighbors.options().cutoff + neighbors.options().skin);
    placement_.place(systems, run_.host_positions());
    run_.compute_with_search(all);
    placed_build_ = neighbors.build_count();
}

}  // namespace mlff::gpu
