// SPDX-License-Identifier: MIT
#include "gpu/engine/step_run.h"

#include <algorithm>

#include "core/error.h"
#include "gpu/engine/step_evaluator.h"
#include "gpu/runtime/cuda_check.h"
#include "neighbors/cell_grid.h"

namespace mlff::gpu {
namespace {

// Rounds up by less than a sixteenth. Searches that find a few more or fewer candidates then give the same step, which
// keeps its graph.
int64_t rounded_up(int64_t count) {
    int64_t unit = 1;
    while (32 * unit <= count) unit *= 2;
    return (count + unit - 1) / unit * unit;
}

NeighborOptions neighbor_options(double cutoff, double skin, bool is_brute_force) {
    NeighborOptions options;
    options.cutoff = cutoff;
    options.skin = skin;
    options.want_shifts = false;
    options.want_reverse = true;
    options.is_brute_force = is_brute_force;
    return options;
}

}  // namespace

StepRun::StepRun(const BackendOptions& options, const MakeStepModel& make_model)
    : model_(make_model(static_cast<cudaStream_t>(stream_))),
      neighbors_(neighbor_options(model_->facts().cutoff, options.neighbor_skin, !options.optimizations.neighbor_grid)),
      memory_(options.gpu_memory_limit_bytes, [this] { graphs_.clear(); }),
      results_(model_->facts().descriptor_count, model_->facts().deviation_count),
      uses_graphs_(options.optimizations.graphs) {
    memory_.add_atom_buffers([this](BufferList& list, const StepSize& size) {
        list.add(positions_, 3 * size.atoms, "the atoms");
        atoms_.list_buffers(list, size.atoms, size.systems, static_cast<int>(model_->facts().atomic_numbers.size()));
        cells_.list_buffers(list, size.systems);
    });
    memory_.add_step_buffers([this](BufferList& list, const StepSize& size) {
        results_.list_buffers(list, size);
        StepSize of_model = size;
        of_model.wanted = size.wanted.of_model();
        model_->list_buffers(list, of_model);
        if (trust_) trust_->list_buffers(list, size);
    });
    neighbors_.set_admission([this](int64_t candidate_count, const GpuNeighborMemory& memory) {
        if (!is_listing_) pending_.edges = candidate_count;
        memory_.admit(pending_, memory);
    });
    model_->set_stages(&stages_);
    if (options.trust_meter) trust_.emplace(*options.trust_meter, model_->facts(), stream_);
}

void StepRun::set_atoms(std::span<const SystemView> systems) {
    int64_t atom_count = 0;
    for (const SystemView& system : systems) atom_count += system.atom_count;
    set_atoms(systems, atom_count);
    set_cells(systems);
}

void StepRun::set_atoms(std::span<const SystemView> systems, int64_t owned_count) {
    if (atoms_.holds(systems, owned_count)) return;
    atoms_.forget();
    cells_.forget();
    check_atom_count(pending_.atoms);
    memory_.admit(pending_, {neighbors_.held_bytes(), neighbors_.held_bytes()});
    reserve_atoms();
    atoms_.set(systems, owned_count, model_->facts().atomic_numbers, stream_);
    if (atoms_.elements_present().size() > present_count_)
        memory_.forget_reserved();  // a model may need memory for each element
    present_count_ = atoms_.elements_present().size();
    element_set_.reset();
    for (int z : atoms_.elements_present()) element_set_.set(static_cast<size_t>(z));
}

void StepRun::reserve_atoms() {
    memory_.reserve_atoms(pending_);
    const int64_t count = 3 * pending_.atoms;
    if (count <= host_positions_.capacity()) return;
    graphs_.clear();
    host_positions_.resize_discard(count + count / 8);
}

void StepRun::prepare(const SystemView& system, ThreadTeam& team) {
    if (model_->prepare(system, atoms_.elements_present(), team, stream_)) graphs_.clear();
}

void StepRun::take_positions(const SystemView& system, bool is_host) {
    const int64_t count = 3 * system.atom_count;
    if (is_host)
        std::copy_n(system.positions, count, host_positions_.data());
    else if (count > 0)
        check(cudaMemcpyAsync(positions_.data(), system.positions, static_cast<size_t>(count) * sizeof(double),
                              cudaMemcpyDeviceToDevice, stream_),
              "copying positions");
}

void StepRun::upload_positions() {
    const int64_t count = 3 * atoms_.atom_count();
    if (count > 0)
        check(cudaMemcpyAsync(positions_.data(), host_positions_.data(), static_cast<size_t>(count) * sizeof(double),
                              cudaMemcpyHostToDevice, stream_),
              "copying positions");
}

void StepRun::search(const SystemView& system, const double* positions) {
    SystemView on_device = system;
    on_device.positions = positions;
    stages_.begin({"neighbour search"}, stream_);
    neighbors_.search(on_device, static_cast<cudaStream_t>(stream_));
    if (model_->facts().wants_runs) neighbors_.sort_into_runs(on_device, static_cast<cudaStream_t>(stream_));
}

void StepRun::use_neighbors(StepSize& size, int64_t most_edges) {
    const GpuEdges<double>& found = neighbors_.edges();
    size.edges = rounded_up(most_edges);
    memory_.reserve_step(size, neighbors_.held_bytes(), results_);
    use_edges({0, size.edges, found.first, found.sender, found.vector, found.distance, found.reverse});
}

void StepRun::use_edges(const StepEdges& edges) {
    edges_ = edges;
    edges_.atom_count = static_cast<int32_t>(atoms_.owned_count());
    edges_.elements = atoms_.elements();
}

void StepRun::run(const StepKind& kind) {
    launch(kind);
    check(cudaStreamSynchronize(stream_), "the evaluation");
    stages_.collect(kind.size.atoms, pending_.edges > 0       ? pending_.edges
                                     : kind.reuses_candidates ? results_.edge_count()
                                                              : neighbors_.edge_count());
}

void StepRun::launch(const StepKind& kind) {
    const Key key = {kind.reuses_candidates,
                     kind.size.to_host,
                     kind.motion ? kind.motion->id() : 0,
                     kind.reuses_candidates ? neighbors_.generation() : 0,
                     kind.size.wanted,
                     edges_,
                     atoms_.tiles(),
                     atoms_.systems(),
                     runs(),
                     element_set_};
    if (stages_.is_watched() || !uses_graphs_) return enqueue(kind);
    graphs_.run(key, stream_, [&] { enqueue(kind); });
}

void StepRun::enqueue(const StepKind& kind) {
    const Wanted& wanted = kind.size.wanted;
    const double* const positions = kind.motion ? kind.motion->positions() : positions_.data();
    use_listed(results_.short_edges, 1, "the results");
    if (!kind.reuses_candidates) {
        results_.short_edges.clear(stream_);
    } else {
        stages_.begin({"edges from candidates"}, stream_);
        if (kind.motion)
            kind.motion->enqueue_move(stream_);
        else if (kind.size.to_host)
            upload_positions();
        neighbors_.enqueue_reuse(positions, static_cast<cudaStream_t>(stream_), results_.short_edges.data());
    }
    const Step step = {.edges = edges_,
                       .tiles = atoms_.tiles(),
                       .wanted = wanted.of_model(),
                       .positions = positions,
                       .systems = atoms_.systems(),
                       .runs = runs(),
                       .cells = cells_.data(),
                       .ghost_count = static_cast<int32_t>(atoms_.atom_count() - atoms_.owned_count()),
                       .ghost_tiles = atoms_.ghost_tiles(),
                       .halo = kind.halo};
    model_->enqueue(step, results_, stream_);
    if (wanted.trust) {
        if (!trust_) fail(Status::unsupported, "expected errors were asked for, but this model has no trust meter");
        stages_.begin({"trust meter"}, stream_);
        trust_->enqueue(edges_, results_, stream_);
    }
    stages_.begin({"sums and results"}, stream_);
    const AtomResults to_sum = {atoms_.systems(), model_->energy_view(step), results_.energies.data(),
                                wanted.virials() ? results_.virials.data() : nullptr};
    if (kind.motion) {
        sum_over_systems(to_sum, results_.partial.data(), results_.totals.data(), stream_);
        const TrustReading* const trust =
            wanted.trust ? trust_->enqueue_reading(edges_.atom_count, results_, stream_) : nullptr;
        kind.motion->enqueue_finish({results_.forces.data(), results_.totals.data(),
                                     &neighbors_.edges().report->search_needed, results_.short_edges.data(), trust},
                                    stream_);
    } else {
        results_.sum_and_download(to_sum, kind.size, kind.reuses_candidates ? neighbors_.edges().report : nullptr,
                                  stream_);
    }
    stages_.finish(stream_);
}

void StepRun::check_distances() const {
    if (results_.has_short_edge()) model_->refuse_short_edges();
}

MemoryForecast StepRun::forecast_memory(int64_t atom_count, int64_t edge_count) const {
    const Wanted wanted = {.forces = true, .virial = true, .atom_energies = true};
    return memory_.forecast({.atoms = atom_count, .edges = rounded_up(edge_count), .wanted = wanted},
                            neighbors_.memory_for(edge_count).needed_bytes);
}

bool StepRun::compute_with_candidates() {
    StepKind kind = {.reuses_candidates = true, .size = pending_};
    use_neighbors(kind.size);
    run(kind);
    if (results_.is_search_needed()) return false;
    check_distances();
    return true;
}

void StepRun::compute_with_search(const SystemView& system) {
    StepKind kind = {.size = pending_};
    if (kind.size.to_host) upload_positions();
    search(system, positions_.data());
    use_neighbors(kind.size);
    run(kind);
    check_distances();
}

void StepRun::set_candidates(int64_t atom_count, const ListedNeighbors& list) {
    is_listing_ = true;
    struct End {
        bool& flag;
        ~End() { flag = false; }
    } end{is_listing_};
    neighbors_.set_candidates(atom_count, list, static_cast<cudaStream_t>(stream_));
}

}  // namespace mlff::gpu
