// SPDX-License-Identifier: MIT
#include <cmath>

#include "api/guard.h"
#include "api/handles.h"
#include "gpu/runtime/host_facts.h"

using mlff::fail;
using mlff::Status;
using namespace mlff::api;

mlff_status mlff_neighbors_create(const mlff_neighbor_options* options, mlff_neighbors** neighbors) {
    if (neighbors) *neighbors = nullptr;
    return guarded([&] {
        require(options, "options");
        require(neighbors, "neighbors");
        require_size(options->struct_size, sizeof(mlff_neighbor_options), "mlff_neighbor_options");
        if (options->thread_count < 0 || options->thread_count > 4096)
            fail(Status::argument, "thread count ", options->thread_count, ", expected 0 (all cores) to 4096");
        mlff::NeighborOptions wanted;
        wanted.cutoff = options->cutoff_angstrom;
        wanted.skin = options->skin_angstrom;
        wanted.half = options->half != 0;
        wanted.want_shifts = options->want_shifts != 0;
        wanted.want_vectors = options->want_vectors != 0;
        wanted.want_distances = options->want_distances != 0;
        wanted.want_reverse = options->want_reverse != 0;
        static const int64_t memory_bytes = mlff::whole_memory();
        wanted.memory_bytes = memory_bytes;
        *neighbors = new mlff_neighbors{mlff::NeighborList(wanted), mlff::ThreadTeam(options->thread_count)};
    });
}

void mlff_neighbors_free(mlff_neighbors* neighbors) { delete neighbors; }

mlff_status mlff_neighbors_update(mlff_neighbors* neighbors, const mlff_system* system) {
    return guarded([&] {
        require(neighbors, "neighbors");
        const mlff::SystemView view = system_view(system);
        if (view.atom_count < 0) fail(Status::argument, "the atom count is ", view.atom_count);
        if (view.atom_count > 0) require(view.positions, "positions");
        neighbors->team.require_threads();
        const OnlyUse use(neighbors->is_used, "neighbour list");
        neighbors->is_valid = false;
        neighbors->list.update(view, neighbors->team);
        neighbors->is_valid = true;
    });
}

mlff_status mlff_neighbors_get_view(const mlff_neighbors* neighbors, mlff_neighbor_view* view) {
    return guarded([&] {
        require(neighbors, "neighbors");
        require(view, "view");
        require_size(view->struct_size, sizeof(mlff_neighbor_view), "mlff_neighbor_view");
        if (!neighbors->is_valid)
            fail(Status::argument, "the neighbour list has no edges yet: mlff_neighbors_update comes first");
        const mlff::Edges& edges = neighbors->list.edges();
        view->atom_count = edges.atom_count;
        view->edge_count = edges.edge_count;
        view->first = edges.first;
        view->sender = edges.sender;
        view->shifts = edges.shift;
        view->vectors = edges.vector;
        view->distances = edges.distance;
        view->reverse = edges.reverse;
        view->was_reused = neighbors->list.was_reused();
    });
}
