// SPDX-License-Identifier: MIT
// Several models as one StepModel: their sum, or their mean. The first part writes to the step's results; each other
// part has its own results, which join those. A part may have a shorter cutoff than the step, and may number elements
// differently.
#include <algorithm>
#include <deque>

#include "core/error.h"
#include "gpu/engine/make_combined_step.h"
#include "gpu/engine/shorter_edges.h"
#include "gpu/engine/step_evaluator.h"
#include "gpu/engine/step_model.h"
#include "gpu/runtime/cuda_check.h"

namespace mlff::gpu {
namespace {

constexpr int kThreads = 256;
int64_t blocks_for(int64_t count) { return (count + kThreads - 1) / kThreads; }

// Launch of these kernels: one thread per item.
__global__ void __launch_bounds__(kThreads)
    join_kernel(int64_t count, const double* numbers, Joining joining, double* joined) {
    mlff::gpu::await_predecessor();
    const int64_t i = blockIdx.x * int64_t{kThreads} + threadIdx.x;
    if (i < count) joined[i] = joining.joined(joined[i], numbers[i]);
}
// A variance is that of the parts so far; the last part leaves its square root.
struct VarianceStep {
    bool is_second = false, is_last = false;  // of the parts

    __device__ double next(double before, double added) const {
        const double sum = is_second ? added : before + added;
        return is_last ? sqrt(sum) : sum;
    }
};
// The same for forces, with their spread.
__global__ void __launch_bounds__(kThreads)
    join_forces_kernel(int64_t atom_count, const double* forces, Joining joining, VarianceStep step, double* joined,
                       double* spread) {
    mlff::gpu::await_predecessor();
    const int64_t atom = blockIdx.x * int64_t{kThreads} + threadIdx.x;
    if (atom >= atom_count) return;
    const double* own = forces + 3 * atom;
    double* const mean = joined + 3 * atom;
    spread[atom] = step.next(spread[atom], joining.added_variance(mean, own, 3));
    for (int k = 0; k < 3; ++k) mean[k] = joining.joined(mean[k], own[k]);
}
// The spread of the energy per atom. One thread per system; `totals` [system][kTotalCount] are those of the part.
__global__ void __launch_bounds__(kThreads)
    join_energies_kernel(SystemsView systems, const double* totals, Joining joining, VarianceStep step, bool is_first,
                         double* means, double* spread) {
    mlff::gpu::await_predecessor();
    const int64_t s = blockIdx.x * int64_t{kThreads} + threadIdx.x;
    if (s >= systems.system_count) return;
    const double energy = totals[s * kTotalCount];
    if (is_first) {
        means[s] = energy;
        return;
    }
    const double next = step.next(spread[s], joining.added_variance(means + s, &energy, 1));
    means[s] = joining.joined(means[s], energy);
    const int32_t first = systems.first_chunk[s], end = systems.first_chunk[s + 1];
    const int32_t atom_count = first < end ? systems.chunks[end - 1].end - systems.chunks[first].begin : 1;
    spread[s] = step.is_last ? next / atom_count : next;
}
__global__ void pass_on_kernel(const int* has_short_edge, int* to) {
    mlff::gpu::await_predecessor();
    if (*has_short_edge) *to = 1;
}
__global__ void __launch_bounds__(kThreads)
    renumber_elements_kernel(int64_t count, const int32_t* elements, const int32_t* own, int32_t* renumbered) {
    mlff::gpu::await_predecessor();
    const int64_t atom = blockIdx.x * int64_t{kThreads} + threadIdx.x;
    if (atom < count) renumbered[atom] = own[elements[atom]];
}
__global__ void __launch_bounds__(kThreads)
    renumber_tiles_kernel(int64_t count, const Tile* tiles, const int32_t* own, Tile* renumbered) {
    mlff::gpu::await_predecessor();
    const int64_t i = blockIdx.x * int64_t{kThreads} + threadIdx.x;
    if (i >= count) return;
    Tile tile = tiles[i];
    tile.element = own[tile.element];
    renumbered[i] = tile;
}
// Joins ElementEnergy::embedding of the parts.
__global__ void join_embeddings_kernel(int element_count, const ElementEnergy* of_part, const int32_t* own,
                                       bool is_first, Joining joining, ElementEnergy* joined) {
    mlff::gpu::await_predecessor();
    const int element = static_cast<int>(blockIdx.x * kThreads + threadIdx.x);
    if (element >= element_count) return;
    const double embedding = of_part[own[element]].embedding;
    joined[element] = {0, is_first ? embedding : joining.joined(joined[element].embedding, embedding)};
}

class CombinedStep : public StepModel {
public:
    CombinedStep(const std::vector<MakeStepModel>& make_parts, std::vector<Joining> joinings, cudaStream_t stream)
        : joinings_(std::move(joinings)) {
        for (const MakeStepModel& make : make_parts) parts_.emplace_back(make(stream));
        for (const Part& part : parts_) facts_.cutoff = std::max(facts_.cutoff, part.model->facts().cutoff);
        facts_.descriptor_count = parts_.front().model->facts().descriptor_count;
        for (const int z : parts_.front().model->facts().atomic_numbers)
            if (std::all_of(parts_.begin(), parts_.end(), [&](const Part& part) { return part.element_of(z) >= 0; }))
                facts_.atomic_numbers.push_back(z);
        for (Part& part : parts_) {
            for (const int z : facts_.atomic_numbers) part.host_own.push_back(part.element_of(z));
            part.own.upload(part.host_own.data(), static_cast<int64_t>(part.host_own.size()), "the model", stream);
            part.is_shorter = part.model->facts().cutoff < facts_.cutoff;
            part.is_renumbered = part.model->facts().atomic_numbers != facts_.atomic_numbers;
        }
        embeddings_.resize_discard(element_count(), "the model");
    }

    const StepModelFacts& facts() const override { return facts_; }
    void set_stages(GpuStages* stages) override {
        StepModel::set_stages(stages);
        for (Part& part : parts_) part.model->set_stages(stages);
    }

    bool prepare(const SystemView& system, const std::vector<int>& elements_present, ThreadTeam& team,
                 cudaStream_t stream) override {
        bool has_moved = false;
        for (Part& part : parts_) {
            part.present.clear();
            for (const int element : elements_present)
                part.present.push_back(part.host_own[static_cast<size_t>(element)]);
            has_moved |= part.model->prepare(system, part.present, team, stream);
        }
        return has_moved;
    }
    bool can_batch(const SystemView& first, const SystemView& next) const override {
        return std::all_of(parts_.begin(), parts_.end(),
                           [&](const Part& part) { return part.model->can_batch(first, next); });
    }

    void list_buffers(BufferList& list, const StepSize& size) override {
        for (size_t p = 0; p < parts_.size(); ++p) {
            Part& part = parts_[p];
            StepSize own = size;
            own.wanted = wanted_by(p, size.wanted);
            part.model->list_buffers(list, own);
            if (p > 0) part_results_.list_buffers(list, own);
            if (part.is_shorter) part.shorter.list_buffers(list, size.atoms, size.edges);
            if (!part.is_renumbered) continue;
            list.add(part.elements, size.atoms, "the atoms");
            list.add(part.tiles, 2 * most_tiles(size.atoms), "the atoms");
        }
        if (!size.wanted.spread) return;
        list.add(part_totals_, size.systems * kTotalCount, "the results");
        list.add(mean_energies_, size.systems, "the results");
    }

    int64_t most_ghost_row_bytes() const override {
        int64_t most = 0;
        for (const Part& part : parts_) most = std::max(most, part.model->most_ghost_row_bytes());
        return most;
    }

    void enqueue(const Step& step, StepResults& results, cudaStream_t stream) override {
        for (size_t p = 0; p < parts_.size(); ++p) {
            Part& part = parts_[p];
            const Step own = step_of(part, step, wanted_by(p, step.wanted), stream);
            StepResults& to = p == 0 ? results : part_results_;
            if (p > 0) {
                use_listed(to.short_edges, 1, "the results");
                to.short_edges.clear(stream);
            }
            part.model->enqueue(own, to, stream);
            begin_stage("joining the parts", Direction::forward, stream);
            const EnergyView energies = part.model->energy_view(own);
            if (step.wanted.spread) join_energies(step, p, energies, to, results, stream);
            launch("the energies of the parts", join_embeddings_kernel, blocks_for(element_count()), kThreads, stream,
                   element_count(), energies.of_element, static_cast<const int32_t*>(part.own.data()), p == 0,
                   joinings_[p], embeddings_.data());
            if (p > 0) join(step, p, results, stream);
        }
    }
    EnergyView energy_view(const Step& step) const override { return {step.edges.elements, embeddings_.data()}; }
    [[noreturn]] void refuse_short_edges() const override {
        fail(Status::system, "two atoms are nearer than a part of the model can take");
    }

private:
    struct Part {
        explicit Part(std::shared_ptr<StepModel> model_in) : model(std::move(model_in)) {}
        int element_of(int z) const {
            const std::vector<int>& known = model->facts().atomic_numbers;
            const auto found = std::find(known.begin(), known.end(), z);
            return found == known.end() ? -1 : static_cast<int>(found - known.begin());
        }

        std::shared_ptr<StepModel> model;
        bool is_shorter = false, is_renumbered = false;
        std::vector<int32_t> host_own;  // [element of the whole]: index of the element in the part
        DeviceBuffer<int32_t> own;      // host_own on the device
        std::vector<int> present;       // indices in the part; a member, so that a step allocates no memory
        ShorterStepEdges shorter;
        DeviceBuffer<int32_t> elements;  // [atom]: indices in the part, if is_renumbered
        DeviceBuffer<Tile> tiles;        // the same for tiles: those of own atoms, then those of ghosts
    };

    int element_count() const { return static_cast<int>(facts_.atomic_numbers.size()); }
    int64_t most_tiles(int64_t atoms) const { return atoms / kAtomsPerTile + element_count(); }

    // Descriptors are those of the first part, and the spread is not one of a part.
    static Wanted wanted_by(size_t p, Wanted wanted) {
        if (p > 0) wanted.descriptors = false;
        wanted.spread = false;
        return wanted;
    }

    // The step as a part sees it.
    Step step_of(Part& part, const Step& step, const Wanted& wanted, cudaStream_t stream) {
        Step own = step;
        own.wanted = wanted;
        if (part.is_shorter) {
            begin_stage("edges of a shorter cutoff", Direction::forward, stream);
            const StepEdges all = part.shorter.enqueue(step.edges_with_ghosts(), part.model->facts().cutoff, stream);
            own.edges = all;
            own.edges.atom_count = step.edges.atom_count;
        }
        if (!part.is_renumbered) return own;
        const int64_t atoms = int64_t{step.edges.atom_count} + step.ghost_count;
        const int32_t* const numbers = part.own.data();
        if (atoms > 0)
            launch("elements of a part", renumber_elements_kernel, blocks_for(atoms), kThreads, stream, atoms,
                   step.edges.elements, numbers, part.elements.data());
        own.edges.elements = part.elements.data();
        own.tiles.tiles = renumbered(step.tiles, numbers, part.tiles.data(), stream);
        own.ghost_tiles.tiles =
            renumbered(step.ghost_tiles, numbers, part.tiles.data() + step.tiles.tile_count, stream);
        return own;
    }
    static const Tile* renumbered(const TilesView& tiles, const int32_t* numbers, Tile* to, cudaStream_t stream) {
        if (tiles.tile_count > 0)
            launch("tiles of a part", renumber_tiles_kernel, blocks_for(tiles.tile_count), kThreads, stream,
                   int64_t{tiles.tile_count}, tiles.tiles, numbers, to);
        return to;
    }

    VarianceStep variance_step(size_t p) const { return {p == 1, p + 1 == parts_.size()}; }

    // Of the spread of the energy, from the energies of one part. `results` have not joined it yet.
    void join_energies(const Step& step, size_t p, const EnergyView& energies, const StepResults& part,
                       StepResults& results, cudaStream_t stream) {
        const AtomResults to_sum = {step.systems, energies, part.energies.data()};
        sum_over_systems(to_sum, results.partial.data(), part_totals_.data(), stream);
        launch("the spread of the energy", join_energies_kernel, blocks_for(step.systems.system_count), kThreads,
               stream, step.systems, static_cast<const double*>(part_totals_.data()), joinings_[p], variance_step(p),
               p == 0, mean_energies_.data(), results.sigma_energies.data());
    }

    // The energies of own atoms, and the forces and virials of all atoms, ghosts too.
    void join(const Step& step, size_t p, StepResults& results, cudaStream_t stream) {
        const int64_t owned = step.edges.atom_count, all = owned + step.ghost_count;
        const auto join_numbers = [&](const DeviceBuffer<double>& numbers, const DeviceBuffer<double>& to,
                                      int64_t count) {
            if (count > 0)
                launch("joining the parts", join_kernel, blocks_for(count), kThreads, stream, count,
                       static_cast<const double*>(numbers.data()), joinings_[p], to.data());
        };
        join_numbers(part_results_.energies, results.energies, owned);
        if (step.wanted.virials()) join_numbers(part_results_.virials, results.virials, 9 * all);
        if (step.wanted.spread && all > 0)
            launch("the spread of forces", join_forces_kernel, blocks_for(all), kThreads, stream, all,
                   static_cast<const double*>(part_results_.forces.data()), joinings_[p], variance_step(p),
                   results.forces.data(), results.sigma_forces.data());
        else if (step.wanted.forces)
            join_numbers(part_results_.forces, results.forces, 3 * all);
        launch("joining the parts", pass_on_kernel, 1, 1, stream,
               static_cast<const int*>(part_results_.short_edges.data()), results.short_edges.data());
    }

    StepModelFacts facts_;
    std::deque<Part> parts_;
    std::vector<Joining> joinings_;           // [part]
    StepResults part_results_{0};             // of one part after the other, but for the first
    DeviceBuffer<double> part_totals_;        // [system][kTotalCount]: of one part after the other, for the spread
    DeviceBuffer<double> mean_energies_;      // [system]: of the parts so far
    DeviceBuffer<ElementEnergy> embeddings_;  // [element]
};

}  // namespace

MakeStepModel make_combined_step(std::vector<MakeStepModel> parts, std::vector<Joining> joinings) {
    return [parts = std::move(parts), joinings = std::move(joinings)](void* stream) -> std::shared_ptr<StepModel> {
        return std::make_shared<CombinedStep>(parts, joinings, static_cast<cudaStream_t>(stream));
    };
}

std::unique_ptr<Evaluator> make_combined_step_evaluator(const BackendOptions& options, std::vector<MakeStepModel> parts,
                                                        std::vector<Joining> joinings) {
    return make_step_evaluator(options, make_combined_step(std::move(parts), std::move(joinings)));
}

}  // namespace mlff::gpu
