// SPDX-License-Identifier: MIT
// A step on the GPU and its data: atoms, positions, edges, the model, results, and the graphs of steps whose sizes and
// addresses repeat. Single systems, batches, domains and dynamics use these parts. For CUDA sources only.
#pragma once

#include <cuda_runtime.h>

#include <bitset>
#include <memory>
#include <optional>
#include <span>

#include "core/elements.h"
#include "gpu/engine/atom_set.h"
#include "gpu/engine/gpu_stages.h"
#include "gpu/engine/step_graphs.h"
#include "gpu/engine/step_memory.h"
#include "gpu/engine/step_model.h"
#include "gpu/engine/step_results.h"
#include "gpu/engine/system_cells.h"
#include "gpu/engine/trust_step.h"
#include "gpu/neighbors/gpu_neighbor_list.h"
#include "gpu/runtime/cuda_stream.h"
#include "gpu/runtime/device_buffer.h"
#include "potential/device_stepper.h"
#include "potential/model.h"

namespace mlff::gpu {

struct StepKind {
    bool reuses_candidates = false;  // true: the step selects its edges; false: they exist already
    StepSize size;
    DeviceMotion* motion = nullptr;  // for dynamics on the device: moves the atoms first, and reads the results
    StepHalo* halo = nullptr;        // for domains
};

class StepRun {
public:
    // Makes the model. The evaluator's GPU must be the current device.
    StepRun(const BackendOptions& options, const MakeStepModel& make_model);

    StepModel& model() { return *model_; }
    const StepModel& model() const { return *model_; }
    StepMemory& memory() { return memory_; }
    StepResults& results() { return results_; }
    GpuNeighborList<double>& neighbors() { return neighbors_; }
    const GpuNeighborList<double>& neighbors() const { return neighbors_; }
    GpuStages& stages() { return stages_; }
    const AtomSet& atoms() const { return atoms_; }
    cudaStream_t stream() const { return stream_; }

    // ---- The parts of a step, in this order ----

    // The number of edges may be unknown.
    void begin(const StepSize& size) { pending_ = size; }
    // Whole systems: their atoms and cells.
    void set_atoms(std::span<const SystemView> systems);
    // Does nothing if the atoms are the same as before. Atoms from `owned_count` on are ghosts.
    void set_atoms(std::span<const SystemView> systems, int64_t owned_count);
    void set_cells(std::span<const SystemView> systems) { cells_.set(systems, stream_); }  // after set_atoms()
    void prepare(const SystemView& system, ThreadTeam& team);
    double* host_positions() { return host_positions_.data(); }  // [atom][3], pinned
    void take_positions(const SystemView& system, bool is_host);
    void upload_positions();
    const double* positions() const { return positions_.data(); }  // on the device
    // Searches neighbours. `positions` are on the device.
    void search(const SystemView& system, const double* positions);
    // Uses the edges of the neighbour list, and reserves memory for the step.
    void use_neighbors(StepSize& size) { use_neighbors(size, neighbors_.edges().edge_capacity); }
    void use_neighbors(StepSize& size, int64_t most_edges);
    // Uses other edges. Call reserve() first.
    void use_edges(const StepEdges& edges);
    void reserve(const StepSize& size) { memory_.reserve_step(size, neighbors_.held_bytes(), results_); }

    void launch(const StepKind& kind);   // as a graph if possible
    void run(const StepKind& kind);      // launches and waits for the results
    void enqueue(const StepKind& kind);  // plain launches
    void check_distances() const;
    MemoryForecast forecast_memory(int64_t atom_count, int64_t edge_count) const;

    // ---- Whole steps for one system, or for several that are placed side by side ----

    const StepSize& pending() const { return pending_; }
    void set_pending_edges(int64_t edges) { pending_.edges = edges; }
    // Returns false if atoms have moved too far for the candidates.
    bool compute_with_candidates();
    void compute_with_search(const SystemView& system);

    // Takes the caller's list of candidates. The number of edges among them is not known yet.
    void set_candidates(int64_t atom_count, const ListedNeighbors& list);

    // The next call may free buffers or write to them, so an error must not leave work in the stream.
    template <class Work>
    void leave_nothing_running(const Work& work) {
        try {
            work();
        } catch (...) {
            cudaStreamSynchronize(stream_);
            throw;
        }
    }

private:
    using ElementSet = std::bitset<kMaxAtomicNumber>;
    struct Key {
        bool reuses_candidates = false, is_host = true;
        int64_t motion = 0;      // DeviceMotion::id()
        int64_t generation = 0;  // of the candidates
        Wanted wanted;
        StepEdges edges;
        TilesView tiles;
        SystemsView systems;
        const int32_t* runs = nullptr;
        ElementSet elements;

        bool operator==(const Key&) const = default;
    };
    void reserve_atoms();
    const int32_t* runs() const { return model_->facts().wants_runs ? neighbors_.runs() : nullptr; }

    Stream stream_;
    std::shared_ptr<StepModel> model_;
    std::optional<TrustStep> trust_;
    GpuNeighborList<double> neighbors_;
    StepMemory memory_;

    AtomSet atoms_;
    SystemCells cells_;
    ElementSet element_set_;
    size_t present_count_ = 0;  // elements
    DeviceBuffer<double> positions_;
    PinnedBuffer<double> host_positions_;
    StepEdges edges_;
    bool is_listing_ = false;

    StepResults results_;
    StepSize pending_;  // of the running call
    StepGraphs<Key> graphs_;
    bool uses_graphs_;
    GpuStages stages_;
};

}  // namespace mlff::gpu
