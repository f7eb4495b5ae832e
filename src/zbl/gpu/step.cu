// SPDX-License-Identifier: MIT
#include "zbl/gpu/step.h"

#include "gpu/engine/step_evaluator.h"
#include "gpu/engine/step_model.h"
#include "gpu/engine/warp.h"
#include "gpu/runtime/cuda_check.h"
#include "zbl/functions/pairs.h"

namespace mlff::zbl::gpu {
namespace {

using namespace mlff::gpu;

struct PairStage {
    StepEdges edges;
    const RepulsionPair* pairs = nullptr;  // [element][element]
    int element_count = 0;
    double* energies = nullptr;         // [atom]
    double* vector_gradient = nullptr;  // [edge][3]; nullptr: not wanted
    int* has_short_edge = nullptr;
};

// E_i = 1/2 sum over edges of V(r), and half of dV/dvector for each edge.
// Launch: blocks_of_atoms blocks, one warp per atom. Lanes take edges in turn, so the order of a sum depends only on
// the list.
__global__ void __launch_bounds__(kBlockThreads) pair_kernel(PairStage stage) {
    mlff::gpu::await_predecessor();
    const WarpOfAtom warp;
    if (warp.atom >= stage.edges.atom_count) return;
    const int64_t end = stage.edges.first[warp.atom + 1];
    const int element = stage.edges.elements[warp.atom];
    double energy = 0;
    for (int64_t edge = stage.edges.first[warp.atom] + warp.lane; edge < end; edge += 32) {
        const double r = stage.edges.distance[edge];
        const int other = stage.edges.elements[stage.edges.sender[edge]];
        if (r == 0) *stage.has_short_edge = 1;
        const RepulsionValue pair = pair_repulsion(stage.pairs[element * stage.element_count + other], r);
        energy += 0.5 * pair.energy;
        if (stage.vector_gradient)
            for (int k = 0; k < 3; ++k)
                stage.vector_gradient[3 * edge + k] = 0.5 * pair.slope / r * stage.edges.vector[3 * edge + k];
    }
    energy = sum_over_warp(energy);
    if (warp.lane == 0) stage.energies[warp.atom] = energy;
}

class ZblStep : public StepModel {
public:
    ZblStep(std::vector<int> elements, cudaStream_t stream) {
        facts_.atomic_numbers = std::move(elements);
        for (const int z : facts_.atomic_numbers) facts_.cutoff = std::max(facts_.cutoff, 2 * covalent_radius(z));
        upload(pairs_, pairs_of(facts_.atomic_numbers), stream);
        upload(alone_, std::vector<ElementEnergy>(facts_.atomic_numbers.size()), stream);
    }

    const StepModelFacts& facts() const override { return facts_; }
    bool prepare(const SystemView&, const std::vector<int>&, ThreadTeam&, cudaStream_t) override { return false; }
    void list_buffers(BufferList& list, const StepSize& size) override {
        if (size.wanted.gradients()) list.add(vector_gradient_, 3 * size.edges, "the edges");
    }
    int64_t most_ghost_row_bytes() const override { return 0; }

    void enqueue(const Step& step, StepResults& results, cudaStream_t stream) override {
        begin_stage("pair repulsion", Direction::forward, stream);
        PairStage stage = {step.edges, pairs_.data(), static_cast<int>(facts_.atomic_numbers.size()),
                           results.energies.data()};
        if (step.wanted.gradients()) stage.vector_gradient = vector_gradient_.data();
        stage.has_short_edge = results.short_edges.data();
        if (step.edges.atom_count > 0)
            launch("the pair repulsion", pair_kernel, blocks_of_atoms(step.edges.atom_count), kBlockThreads, stream,
                   stage);
        if (step.wanted.gradients()) write_forces(step, vector_gradient_.data(), results, stream);
    }

    EnergyView energy_view(const Step& step) const override { return {step.edges.elements, alone_.data()}; }
    [[noreturn]] void refuse_short_edges() const override { fail(Status::system, "two atoms are at the same place"); }

private:
    StepModelFacts facts_;
    DeviceBuffer<RepulsionPair> pairs_;
    DeviceBuffer<ElementEnergy> alone_;  // [element]: energies of single atoms, all zero
    DeviceBuffer<double> vector_gradient_;
};

}  // namespace

bool is_available() { return true; }

MakeStepModel make_step_model(std::vector<int> elements) {
    return [elements = std::move(elements)](void* stream) -> std::shared_ptr<StepModel> {
        return std::make_shared<ZblStep>(elements, static_cast<cudaStream_t>(stream));
    };
}

std::unique_ptr<Evaluator> make_gpu_evaluator(std::vector<int> elements, const BackendOptions& options) {
    return make_step_evaluator(options, make_step_model(std::move(elements)));
}

}  // namespace mlff::zbl::gpu
