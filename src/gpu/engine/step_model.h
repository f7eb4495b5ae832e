// SPDX-License-Identifier: MIT
// What a model adds to the engine: its tables, its buffers, and the kernels between edges and results. The engine has
// the rest: neighbour lists, graphs, memory, batches, copies and totals. For CUDA sources only.
#pragma once

#include <cuda_runtime.h>

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
};

// One step as a model sees it. All of it is baked into graphs: the same view is the same work.
struct Step {
    StepEdges edges;
    TilesView tiles;
    Wanted wanted;
    // For terms that need more than edges. Systems of a batch may have been moved as a whole.
    const double* positions = nullptr;  // [atom][3], ghosts too
    SystemsView systems;
    const SystemCell* cells = nullptr;  // [system]; of a domain, the cell of the whole system
    // Of domains:
    int32_t ghost_count = 0;  // behind the atoms that edges, tiles and results of atoms are of
    TilesView ghost_tiles;
    StepHalo* halo = nullptr;  // such steps are no graphs

    // Edges that ghosts receive from own atoms are among these. Functions of `edges` do not reach them.
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

    // Before every step, when the atoms are known: tables of the elements that are there (indices) and what else
    // depends on the system beside positions. True if memory has moved, so that graphs of earlier steps are void.
    // A batch is prepared by its first system.
    virtual bool prepare(const SystemView& system, const std::vector<int>& elements_present, ThreadTeam& team,
                         cudaStream_t stream) = 0;
    virtual bool can_batch(const SystemView& first, const SystemView& next) const {
        (void)first, (void)next;
        return true;
    }

    // All memory of the model that grows with the system; taken before enqueue(). Called before prepare() for the same
    // atoms, too.
    virtual void list_buffers(BufferList& list, const StepSize& size) = 0;

    // Of the largest rows that it asks for in fill_ghosts().
    virtual int64_t most_ghost_row_bytes() const = 0;

    // Launches everything between edges and results: energies, and of forces, virials and descriptors what is wanted.
    // Sets *short_edges, which is 0, if there are edges that the model cannot take. May be captured in a graph, unless
    // there is a halo: no allocation, no word with the host. There may be no atoms and no edges.
    virtual void enqueue(const Step& step, StepResults& results, cudaStream_t stream) = 0;
    // For sum_over_systems().
    virtual EnergyView energy_view(const Step& step) const = 0;
    // Throws Error{system}: *short_edges was set.
    [[noreturn]] virtual void refuse_short_edges() const = 0;

    virtual void set_stages(GpuStages* stages) { stages_ = stages; }

protected:
    // What enqueue() launches from here on belongs to this stage.
    void begin_stage(const char* name, Direction direction, cudaStream_t stream) {
        stages_->begin({name, direction}, stream);
    }
    void begin_stage(const char* name, Direction direction, size_t layer, cudaStream_t stream,
                     const StepWork& work = kUnknownStepWork) {
        stages_->begin({name, direction, static_cast<int>(layer)}, stream, work);
    }

    // Before rows [atom][row_size] of other atoms are read that were written for own atoms.
    template <class T>
    void fill_ghosts(const Step& step, T* rows, int64_t row_size, Direction direction, size_t layer,
                     cudaStream_t stream) {
        if (!step.halo) return;
        begin_stage("exchange of rows", direction, layer, stream);
        step.halo->fill(rows, row_size * static_cast<int64_t>(sizeof(T)), stream);
    }

    // The last of a step: forces and virials that are wanted, of ghosts too, from vector_gradient[edge][3] of own
    // atoms' edges.
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
