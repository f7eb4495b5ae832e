// SPDX-License-Identifier: MIT
// What a model adds to the GPU engine: its tables, its buffers, and the kernels from edges to results. The engine has
// the rest: neighbour lists, graphs, memory, batches, copies and totals. For CUDA sources only.
#pragma once

#include <cuda_runtime.h>

#include <concepts>
#include <memory>
#include <vector>

#include "core/system_view.h"
#include "core/threads.h"
#include "gpu/engine/atom_set.h"
#include "gpu/engine/buffer_list.h"
#include "gpu/engine/gpu_stages.h"
#include "gpu/engine/step_edges.h"
#include "gpu/engine/step_halo.h"
#include "gpu/engine/step_results.h"
#include "gpu/engine/system_cells.h"
#include "gpu/engine/totals.h"

namespace mlff::gpu {

struct StepModelFacts {
    double cutoff = 0;                // angstrom
    std::vector<int> atomic_numbers;  // [element]
    int descriptor_count = 0;
    int deviation_count = 0;  // of a committee: its members but one
    bool reads_edges = true;
    bool wants_runs = false;  // whether it reads Step::runs
};

// One step as a model sees it. A graph is captured with these values, so equal steps must launch equal kernels.
struct Step {
    StepEdges edges;
    TilesView tiles;
    Wanted wanted;
    // For terms that need more than edges. Systems of a batch may have been moved as a whole.
    const double* positions = nullptr;  // [atom][3], ghosts too
    SystemsView systems;
    const int32_t* runs = nullptr;  // [atom], of one system: an order in which neighbours in it stand near each other
    const SystemCell* cells = nullptr;  // [system]; of a domain, the cell of the whole system
    // For domains. Ghosts come after the own atoms, which are those of `edges`, `tiles` and results of atoms.
    int32_t ghost_count = 0;
    TilesView ghost_tiles;
    StepHalo* halo = nullptr;  // steps with a halo are not graphs

    // Also has the edges that ghosts receive from own atoms. What is computed for `edges` does not exist for these.
    StepEdges edges_with_ghosts() const {
        StepEdges all = edges;
        all.atom_count += ghost_count;
        return all;
    }
};

class StepModel {
public:
    virtual ~StepModel() = default;
    virtual const StepModelFacts& facts() const = 0;

    // Called before every step, when the atoms are known. Makes tables for the elements present (indices) and
    // everything else that depends on the system but not on positions. Returns true if memory has moved, so that graphs
    // of earlier steps are invalid. For a batch `system` is the first one.
    virtual bool prepare(const SystemView& system, const std::vector<int>& elements_present, ThreadTeam& team,
                         cudaStream_t stream) = 0;
    virtual bool can_batch(const SystemView& first, const SystemView& next) const {
        (void)first, (void)next;
        return true;
    }

    // Lists all memory of the model that grows with the system. It is allocated before enqueue(). May be called before
    // prepare() has seen the atoms.
    virtual void list_buffers(BufferList& list, const StepSize& size) = 0;

    // Of the largest rows that it gives to fill_ghosts().
    virtual int64_t most_ghost_row_bytes() const = 0;

    // Launches everything from edges to results: always energies; forces, virials and descriptors if wanted. Sets
    // results.short_edges, which is 0 before, if an edge is too short for the model. Without a halo it may be captured
    // in a graph: it must not allocate memory or wait for the device. There may be no atoms and no edges.
    virtual void enqueue(const Step& step, StepResults& results, cudaStream_t stream) = 0;
    // For sum_over_systems().
    virtual EnergyView energy_view(const Step& step) const = 0;
    // Throws Error{system}, because results.short_edges was set.
    [[noreturn]] virtual void refuse_short_edges() const = 0;

    virtual void set_stages(GpuStages* stages) { stages_ = stages; }

protected:
    bool has_watched_stages() const { return stages_->is_watched(); }
    // Kernels launched from here on belong to this stage.
    void begin_stage(const char* name, Direction direction, cudaStream_t stream) {
        stages_->begin({name, direction}, stream);
    }
    void begin_stage(const char* name, Direction direction, size_t layer, cudaStream_t stream,
                     const StepWork& work = kUnknownStepWork) {
        stages_->begin({name, direction, static_cast<int>(layer)}, stream, work);
    }
    // `work` returns the StepWork. It is called only while profiling.
    template <std::invocable Work>
    void begin_stage(const char* name, Direction direction, cudaStream_t stream, const Work& work) {
        if (stages_->is_watched()) stages_->begin({name, direction}, stream, work());
    }
    template <std::invocable Work>
    void begin_stage(const char* name, Direction direction, size_t layer, cudaStream_t stream, const Work& work) {
        if (stages_->is_watched()) stages_->begin({name, direction, static_cast<int>(layer)}, stream, work());
    }

    // Call this when `rows` [atom][row_size], features or gradients, have been written for own atoms, and before they
    // are read for ghosts.
    template <class T>
    void fill_ghosts(const Step& step, T* rows, int64_t row_size, Direction direction, size_t layer,
                     cudaStream_t stream) {
        if (!step.halo) return;
        begin_stage("exchange of rows", direction, layer, stream);
        step.halo->fill(rows, row_size * static_cast<int64_t>(sizeof(T)), stream);
    }

    // The last stage of a step: forces and virials, if wanted, of own atoms and ghosts. vector_gradient[edge][3] is
    // that of the edges of own atoms.
    static void write_forces(const Step& step, const double* vector_gradient, StepResults& results,
                             cudaStream_t stream) {
        double* forces = step.wanted.forces ? results.forces.data() : nullptr;
        double* virials = step.wanted.virials() ? results.virials.data() : nullptr;
        gather_forces(step.edges_with_ghosts(), step.edges.atom_count, vector_gradient, forces, virials, stream);
    }

private:
    GpuStages* stages_ = nullptr;  // set before any step
};

}  // namespace mlff::gpu
