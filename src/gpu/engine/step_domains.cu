// SPDX-License-Identifier: MIT
#include "gpu/engine/step_domains.h"

#include "gpu/runtime/cuda_check.h"
#include "gpu/runtime/nvtx_range.h"

namespace mlff::gpu {

StepDomains::StepDomains(StepRun& run, int device) : run_(run), device_(device) {
    run_.memory().add_step_buffers([this](BufferList& list, const StepSize& size) {
        staged_halo_.list_buffers(list, size.halo, run_.model().most_ghost_row_bytes());
    });
}

void StepDomains::evaluate_domain(const Domain& domain, const Edges&, const Outputs& outputs, ThreadTeam& team) {
    const CurrentDevice current(device_);
    const NvtxRange range("evaluation");
    const GpuStages::Watch watch(run_.stages(), team.profile());
    run_.leave_nothing_running([&] {
        compute(domain, wanted_of({&outputs, 1}), team);
        run_.results().write_domain(domain, outputs);
    });
}

// Reads the number of edges from the device before the step, because there may be many more candidates than edges: the
// caller chooses the skin.
void StepDomains::compute(const Domain& domain, const Wanted& wanted, ThreadTeam& team) {
    const SystemView& atoms = domain.atoms;
    StepKind kind = {.size = {.atoms = atoms.atom_count, .wanted = wanted}};
    if (domain.halo.transport != RowTransport::shared)
        kind.size.halo = {static_cast<int64_t>(domain.halo.sent.size()), domain.halo.received_count};
    run_.begin(kind.size);
    run_.set_atoms({&atoms, 1}, domain.owned_count);
    const SystemView whole = domain.whole_cell();
    run_.set_cells({&whole, 1});
    run_.prepare(atoms, team);
    run_.take_positions(atoms, true);
    run_.upload_positions();
    run_.stages().begin({"edges from candidates"}, run_.stream());
    GpuNeighborList<double>& neighbors = run_.neighbors();
    const bool is_known = domain.list_version != 0 && domain.list_version == list_version_ &&
                          neighbors.has_listed_candidates() && neighbors.edges().atom_count == atoms.atom_count;
    if (!is_known) list_neighbors(domain);
    neighbors.enqueue_reuse(run_.positions(), run_.stream());
    kind.size.edges = neighbors.read_edge_count(run_.stream());
    const int64_t edge_count = kind.size.edges;
    run_.set_pending_edges(edge_count);
    run_.use_neighbors(kind.size, edge_count);
    kind.halo = &set_halo(domain);
    run_.enqueue(kind);
    check(cudaStreamSynchronize(run_.stream()), "the evaluation");
    run_.stages().collect(domain.owned_count, edge_count);
    run_.check_distances();
}

void StepDomains::list_neighbors(const Domain& domain) {
    list_version_ = 0;
    run_.set_candidates(domain.atoms.atom_count, {domain.owned_count, domain.first, domain.neighbors});
    list_version_ = domain.list_version;
}

StepHalo& StepDomains::set_halo(const Domain& domain) {
    const int64_t row_bytes = run_.model().most_ghost_row_bytes();
    if (domain.halo.transport == RowTransport::shared) {
        shared_halo_.set(domain.halo, domain.owned_count, row_bytes, domain.list_version, run_.stream());
        return shared_halo_;
    }
    staged_halo_.set(domain.halo, domain.owned_count, row_bytes, domain.list_version, run_.stream());
    return staged_halo_;
}

GpuAddress StepDomains::gpu_address(RowTransport transport) {
    const CurrentDevice current(device_);
    return (transport == RowTransport::window ? staged_halo_.window_rows() : shared_halo_.rows()).address();
}

void StepDomains::reach_gpu(const GpuAddress& address) {
    const CurrentDevice current(device_);
    (address.is_host ? staged_halo_.window_rows() : shared_halo_.rows()).reach(address, run_.stream());
}

}  // namespace mlff::gpu
