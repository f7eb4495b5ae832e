// SPDX-License-Identifier: MIT
// The sum of several models as one StepModel. The first term writes to the step's results; each other term has its own
// results, which are added. A term may have a shorter cutoff than the step, and may number elements differently.
#include <algorithm>
#include <deque>

#include "core/error.h"
#include "gpu/engine/make_step_sum.h"
#include "gpu/engine/shorter_edges.h"
#include "gpu/engine/step_evaluator.h"
#include "gpu/engine/step_model.h"
#include "gpu/runtime/cuda_check.h"

namespace mlff::gpu {
namespace {

constexpr int kThreads = 256;
int64_t blocks_for(int64_t count) { return (count + kThreads - 1) / kThreads; }

// Launch of these kernels: one thread per item.
__global__ void __launch_bounds__(kThreads) add_kernel(int64_t count, const double* numbers, double* sums) {
    mlff::gpu::await_predecessor();
    const int64_t i = blockIdx.x * int64_t{kThreads} + threadIdx.x;
    if (i < count) sums[i] += numbers[i];
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
// Adds up ElementEnergy::embedding over the terms.
__global__ void add_embeddings_kernel(int element_count, const ElementEnergy* of_term, const int32_t* own,
                                      bool is_first, ElementEnergy* sums) {
    mlff::gpu::await_predecessor();
    const int element = static_cast<int>(blockIdx.x * kThreads + threadIdx.x);
    if (element >= element_count) return;
    const double embedding = of_term[own[element]].embedding;
    sums[element] = {0, is_first ? embedding : sums[element].embedding + embedding};
}

class StepSum : public StepModel {
public:
    StepSum(const std::vector<MakeStepModel>& make_terms, cudaStream_t stream) {
        for (const MakeStepModel& make : make_terms) terms_.emplace_back(make(stream));
        facts_.reads_edges = false;
        for (const Term& term : terms_) {
            const StepModelFacts& own = term.model->facts();
            if (own.reads_edges == facts_.reads_edges)
                facts_.cutoff = std::max(facts_.cutoff, own.cutoff);
            else if (own.reads_edges)  // then the others have no say
                facts_.cutoff = own.cutoff;
            facts_.reads_edges |= own.reads_edges;
            facts_.wants_runs |= own.wants_runs;
        }
        facts_.descriptor_count = terms_.front().model->facts().descriptor_count;
        for (const int z : terms_.front().model->facts().atomic_numbers)
            if (std::all_of(terms_.begin(), terms_.end(), [&](const Term& term) { return term.element_of(z) >= 0; }))
                facts_.atomic_numbers.push_back(z);
        for (Term& term : terms_) {
            for (const int z : facts_.atomic_numbers) term.host_own.push_back(term.element_of(z));
            term.own.upload(term.host_own.data(), static_cast<int64_t>(term.host_own.size()), "the model", stream);
            term.is_shorter = term.model->facts().reads_edges && term.model->facts().cutoff < facts_.cutoff;
            term.is_renumbered = term.model->facts().atomic_numbers != facts_.atomic_numbers;
        }
        embeddings_.resize_discard(element_count(), "the model");
    }

    const StepModelFacts& facts() const override { return facts_; }
    void set_stages(GpuStages* stages) override {
        StepModel::set_stages(stages);
        for (Term& term : terms_) term.model->set_stages(stages);
    }

    bool prepare(const SystemView& system, const std::vector<int>& elements_present, ThreadTeam& team,
                 cudaStream_t stream) override {
        bool has_moved = false;
        for (Term& term : terms_) {
            term.present.clear();
            for (const int element : elements_present)
                term.present.push_back(term.host_own[static_cast<size_t>(element)]);
            has_moved |= term.model->prepare(system, term.present, team, stream);
        }
        return has_moved;
    }
    bool can_batch(const SystemView& first, const SystemView& next) const override {
        return std::all_of(terms_.begin(), terms_.end(),
                           [&](const Term& term) { return term.model->can_batch(first, next); });
    }

    void list_buffers(BufferList& list, const StepSize& size) override {
        for (size_t t = 0; t < terms_.size(); ++t) {
            Term& term = terms_[t];
            StepSize own = size;
            if (t > 0) own.wanted.descriptors = false;
            term.model->list_buffers(list, own);
            if (t > 0) term.results.list_buffers(list, own);
            if (term.is_shorter) term.shorter.list_buffers(list, size.atoms, size.edges);
            if (!term.is_renumbered) continue;
            list.add(term.elements, size.atoms, "the atoms");
            list.add(term.tiles, 2 * most_tiles(size.atoms), "the atoms");
        }
    }

    int64_t most_ghost_row_bytes() const override {
        int64_t most = 0;
        for (const Term& term : terms_) most = std::max(most, term.model->most_ghost_row_bytes());
        return most;
    }

    void enqueue(const Step& step, StepResults& results, cudaStream_t stream) override {
        for (size_t t = 0; t < terms_.size(); ++t) {
            Term& term = terms_[t];
            const Step own = step_of(term, step, t == 0, stream);
            StepResults& to = t == 0 ? results : term.results;
            if (t > 0) {
                use_listed(to.short_edges, 1, "the results");
                to.short_edges.clear(stream);
            }
            term.model->enqueue(own, to, stream);
            begin_stage("sum of terms", Direction::forward, stream);
            launch("the sum of terms", add_embeddings_kernel, blocks_for(element_count()), kThreads, stream,
                   element_count(), term.model->energy_view(own).of_element,
                   static_cast<const int32_t*>(term.own.data()), t == 0, embeddings_.data());
            if (t > 0) add(step, term.results, results, stream);
        }
    }
    EnergyView energy_view(const Step& step) const override { return {step.edges.elements, embeddings_.data()}; }
    [[noreturn]] void refuse_short_edges() const override {
        fail(Status::system, "two atoms are nearer than a term of the sum can take");
    }

private:
    struct Term {
        explicit Term(std::shared_ptr<StepModel> model_in) : model(std::move(model_in)) {}
        int element_of(int z) const {
            const std::vector<int>& known = model->facts().atomic_numbers;
            const auto found = std::find(known.begin(), known.end(), z);
            return found == known.end() ? -1 : static_cast<int>(found - known.begin());
        }

        std::shared_ptr<StepModel> model;
        bool is_shorter = false, is_renumbered = false;
        std::vector<int32_t> host_own;  // [element of the sum]: index of the element in the term
        DeviceBuffer<int32_t> own;      // host_own on the device
        std::vector<int> present;       // indices in the term; a member, so that a step allocates no memory
        ShorterStepEdges shorter;
        StepResults results{0};          // not used for the first term
        DeviceBuffer<int32_t> elements;  // [atom]: indices in the term, if is_renumbered
        DeviceBuffer<Tile> tiles;        // the same for tiles: those of own atoms, then those of ghosts
    };

    int element_count() const { return static_cast<int>(facts_.atomic_numbers.size()); }
    int64_t most_tiles(int64_t atoms) const { return atoms / kAtomsPerTile + element_count(); }

    // The step as a term sees it.
    Step step_of(Term& term, const Step& step, bool is_first, cudaStream_t stream) {
        Step own = step;
        if (!is_first) own.wanted.descriptors = false;
        if (term.is_shorter) {
            begin_stage("edges of a shorter cutoff", Direction::forward, stream);
            const StepEdges all = term.shorter.enqueue(step.edges_with_ghosts(), term.model->facts().cutoff, stream);
            own.edges = all;
            own.edges.atom_count = step.edges.atom_count;
        }
        if (!term.is_renumbered) return own;
        const int64_t atoms = int64_t{step.edges.atom_count} + step.ghost_count;
        const int32_t* const numbers = term.own.data();
        if (atoms > 0)
            launch("elements of a term", renumber_elements_kernel, blocks_for(atoms), kThreads, stream, atoms,
                   step.edges.elements, numbers, term.elements.data());
        own.edges.elements = term.elements.data();
        own.tiles.tiles = renumbered(step.tiles, numbers, term.tiles.data(), stream);
        own.ghost_tiles.tiles =
            renumbered(step.ghost_tiles, numbers, term.tiles.data() + step.tiles.tile_count, stream);
        return own;
    }
    static const Tile* renumbered(const TilesView& tiles, const int32_t* numbers, Tile* to, cudaStream_t stream) {
        if (tiles.tile_count > 0)
            launch("tiles of a term", renumber_tiles_kernel, blocks_for(tiles.tile_count), kThreads, stream,
                   int64_t{tiles.tile_count}, tiles.tiles, numbers, to);
        return to;
    }

    // Adds the energies of own atoms, and the forces and virials of all atoms, ghosts too.
    static void add(const Step& step, const StepResults& term, StepResults& sums, cudaStream_t stream) {
        const int64_t owned = step.edges.atom_count, all = owned + step.ghost_count;
        const auto add_numbers = [&](const DeviceBuffer<double>& numbers, const DeviceBuffer<double>& to,
                                     int64_t count) {
            if (count > 0)
                launch("the sum of terms", add_kernel, blocks_for(count), kThreads, stream, count,
                       static_cast<const double*>(numbers.data()), to.data());
        };
        add_numbers(term.energies, sums.energies, owned);
        if (step.wanted.forces) add_numbers(term.forces, sums.forces, 3 * all);
        if (step.wanted.virials()) add_numbers(term.virials, sums.virials, 9 * all);
        launch("the sum of terms", pass_on_kernel, 1, 1, stream, static_cast<const int*>(term.short_edges.data()),
               sums.short_edges.data());
    }

    StepModelFacts facts_;
    std::deque<Term> terms_;
    DeviceBuffer<ElementEnergy> embeddings_;  // [element]
};

}  // namespace

MakeStepModel make_step_sum(std::vector<MakeStepModel> terms) {
    return [terms = std::move(terms)](void* stream) -> std::shared_ptr<StepModel> {
        return std::make_shared<StepSum>(terms, static_cast<cudaStream_t>(stream));
    };
}

std::unique_ptr<Evaluator> make_step_sum_evaluator(const BackendOptions& options, std::vector<MakeStepModel> terms) {
    return make_step_evaluator(options, make_step_sum(std::move(terms)));
}

}  // namespace mlff::gpu
