// SPDX-License-Identifier: MIT
// Several models as one StepModel: their sum, or their mean. The first part writes to the step's results; each other
// part has its own results, which join those. Parts run side by side, each in its own stream, which become branches of
// the step's graph. A part may have a shorter cutoff than the step, or read no edges, and may number elements
// differently.
#include <algorithm>
#include <deque>

#include "core/error.h"
#include "gpu/engine/make_combined_step.h"
#include "gpu/engine/shorter_edges.h"
#include "gpu/engine/step_evaluator.h"
#include "gpu/engine/step_model.h"
#include "gpu/runtime/cuda_check.h"
#include "gpu/runtime/cuda_stream.h"

namespace mlff::gpu {
namespace {

constexpr int kThreads = 256;
int64_t blocks_for(int64_t count) { return (count + kThreads - 1) / kThreads; }

// A variance is that of the parts so far; the last part leaves its square root.
struct VarianceStep {
    bool is_second = false, is_last = false;  // of the parts

    __device__ double next(double before, double added) const {
        const double sum = is_second ? added : before + added;
        return is_last ? sqrt(sum) : sum;
    }
};

// What the results of a part become part of, and how. Energies are those of own atoms; forces and virials also have
// entries for ghosts.
struct JoinedPart {
    Joining joining;
    VarianceStep variance;
    const double *energies = nullptr, *forces = nullptr, *virials = nullptr;
    const int* has_short_edge = nullptr;
    const ElementEnergy* of_element = nullptr;  // ElementEnergy::embedding joins too
    const int32_t* own = nullptr;               // [element of the whole]: index in of_element
    double* deviations = nullptr;               // [atom][3]; nullptr if not wanted
};
constexpr size_t kMostJoined = 8;  // parts in one launch
struct JoinedParts {
    JoinedPart parts[kMostJoined];
    int count = 0;
    bool begins_with_first = false;  // the first part, of which only the embedding is not where it belongs
    int64_t owned_count = 0, atom_count = 0;
    int element_count = 0;
    double *energies = nullptr, *forces = nullptr, *virials = nullptr;  // forces, virials: nullptr if not wanted
    double* spread = nullptr;                                           // of forces; nullptr if not wanted
    int* has_short_edge = nullptr;
    ElementEnergy* embeddings = nullptr;

    __host__ __device__ int64_t item_count() const {
        const int64_t items = virials ? 10 * atom_count : atom_count;
        return items > element_count ? items : element_count;
    }
    // One number of the whole. number_of(part): the part's.
    template <class Number>
    __device__ double joined(double number, const Number& number_of) const {
        for (int p = begins_with_first ? 1 : 0; p < count; ++p)
            number = parts[p].joining.joined(number, number_of(parts[p]));
        return number;
    }
};

__device__ void join_force(const JoinedParts& all, int64_t atom) {
    double* const mean = all.forces + 3 * atom;
    double sum[3] = {mean[0], mean[1], mean[2]};
    double spread = all.spread ? all.spread[atom] : 0;
    for (int p = all.begins_with_first ? 1 : 0; p < all.count; ++p) {
        const JoinedPart& part = all.parts[p];
        const double own[3] = {part.forces[3 * atom], part.forces[3 * atom + 1], part.forces[3 * atom + 2]};
        if (all.spread) spread = part.variance.next(spread, part.joining.added_variance(sum, own, 3));
        for (int k = 0; k < 3; ++k) {
            if (part.deviations) part.deviations[3 * atom + k] = part.joining.deviation(sum[k], own[k]);
            sum[k] = part.joining.joined(sum[k], own[k]);
        }
    }
    for (int k = 0; k < 3; ++k) mean[k] = sum[k];
    if (all.spread) all.spread[atom] = spread;
}

// Launch: one thread per item.
__global__ void __launch_bounds__(kThreads) join_kernel(JoinedParts all) {
    mlff::gpu::await_predecessor();
    const int64_t i = blockIdx.x * int64_t{kThreads} + threadIdx.x;
    if (i < all.element_count) {
        const auto embedding_of = [i](const JoinedPart& part) { return part.of_element[part.own[i]].embedding; };
        const double first = all.begins_with_first ? embedding_of(all.parts[0]) : all.embeddings[i].embedding;
        all.embeddings[i] = {0, all.joined(first, embedding_of)};
    }
    for (int p = all.begins_with_first ? 1 : 0; i == 0 && p < all.count; ++p)
        if (*all.parts[p].has_short_edge) *all.has_short_edge = 1;
    if (i < all.owned_count)
        all.energies[i] = all.joined(all.energies[i], [i](const JoinedPart& part) { return part.energies[i]; });
    if (i < all.atom_count) {
        if (all.forces) join_force(all, i);
    } else if (all.virials && i < 10 * all.atom_count) {
        const int64_t k = i - all.atom_count;
        all.virials[k] = all.joined(all.virials[k], [k](const JoinedPart& part) { return part.virials[k]; });
    }
}
// The spread of the energy per atom. One thread per system; `totals` [system][kTotalCount] are those of the part.
// `spread` [system] and `deviation`, of the only system, are nullptr if not wanted.
__global__ void __launch_bounds__(kThreads)
    join_energies_kernel(SystemsView systems, const double* totals, Joining joining, VarianceStep step, bool is_first,
                         double* means, double* spread, double* deviation) {
    mlff::gpu::await_predecessor();
    const int64_t s = blockIdx.x * int64_t{kThreads} + threadIdx.x;
    if (s >= systems.system_count) return;
    const double energy = totals[s * kTotalCount];
    if (is_first) {
        means[s] = energy;
        return;
    }
    const double mean = means[s];
    means[s] = joining.joined(mean, energy);
    if (deviation) *deviation = joining.deviation(mean, energy);
    if (!spread) return;
    const double next = step.next(spread[s], joining.added_variance(&mean, &energy, 1));
    const int32_t first = systems.first_chunk[s], end = systems.first_chunk[s + 1];
    const int32_t atom_count = first < end ? systems.chunks[end - 1].end - systems.chunks[first].begin : 1;
    spread[s] = step.is_last ? next / atom_count : next;
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
class CombinedStep : public StepModel {
public:
    CombinedStep(const std::vector<MakeStepModel>& make_parts, std::vector<Joining> joinings, cudaStream_t stream)
        : joinings_(std::move(joinings)) {
        for (const MakeStepModel& make : make_parts) parts_.emplace_back(make(stream));
        set_cutoff();
        facts_.descriptor_count = parts_.front().model->facts().descriptor_count;
        facts_.deviation_count = joinings_.back().adds ? 0 : static_cast<int>(parts_.size()) - 1;
        for (const int z : parts_.front().model->facts().atomic_numbers)
            if (std::all_of(parts_.begin(), parts_.end(), [&](const Part& part) { return part.element_of(z) >= 0; }))
                facts_.atomic_numbers.push_back(z);
        for (Part& part : parts_) {
            for (const int z : facts_.atomic_numbers) part.host_own.push_back(part.element_of(z));
            part.own.upload(part.host_own.data(), static_cast<int64_t>(part.host_own.size()), "the model", stream);
            part.is_shorter = part.model->facts().reads_edges && part.model->facts().cutoff < facts_.cutoff;
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
            if (p > 0) part.results.list_buffers(list, own);
            if (part.is_shorter) part.shorter.list_buffers(list, size.atoms, size.edges);
            if (!part.is_renumbered) continue;
            list.add(part.elements, size.atoms, "the atoms");
            list.add(part.tiles, 2 * most_tiles(size.atoms), "the atoms");
        }
        if (!has_spread(size.wanted)) return;
        list.add(part_totals_, size.systems * kTotalCount, "the results");
        list.add(mean_energies_, size.systems, "the results");
    }

    int64_t most_ghost_row_bytes() const override {
        int64_t most = 0;
        for (const Part& part : parts_) most = std::max(most, part.model->most_ghost_row_bytes());
        return most;
    }

    void enqueue(const Step& step, StepResults& results, cudaStream_t stream) override {
        // Domains exchange rows in the same order everywhere, and stages are timed one after the other.
        const bool is_parallel = !step.halo && !has_watched_stages();
        try {
            for (size_t p = 1; p < parts_.size(); ++p) {
                if (!is_parallel) break;
                parts_[p].order.follow(stream, parts_[p].stream);
                enqueue_part(step, p, results, parts_[p].stream);
            }
            enqueue_part(step, 0, results, stream);
            for (size_t p = 1; p < parts_.size(); ++p) {
                if (is_parallel)
                    parts_[p].order.follow(parts_[p].stream, stream);
                else
                    enqueue_part(step, p, results, stream);
            }
        } catch (...) {  // the caller waits for its own stream only
            for (const Part& part : parts_) cudaStreamSynchronize(part.stream);
            throw;
        }
        begin_stage("joining the parts", Direction::forward, stream);
        if (has_spread(step.wanted))
            for (size_t p = 0; p < parts_.size(); ++p) join_energies(step, p, results, stream);
        join(step, results, stream);
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
        StepResults results{0, 0};  // not used for the first part
        EnergyView energies;        // of the step that was enqueued
        Stream stream;              // not used for the first part
        StreamOrder order;
        DeviceBuffer<int32_t> elements;  // [atom]: indices in the part, if is_renumbered
        DeviceBuffer<Tile> tiles;        // the same for tiles: those of own atoms, then those of ghosts
    };

    int element_count() const { return static_cast<int>(facts_.atomic_numbers.size()); }
    int64_t most_tiles(int64_t atoms) const { return atoms / kAtomsPerTile + element_count(); }

    // Descriptors are those of the first part, and the spread is not one of a part.
    static Wanted wanted_by(size_t p, Wanted wanted) {
        if (p > 0) wanted.descriptors = false;
        wanted.spread = wanted.deviations = false;
        return wanted;
    }
    static bool has_spread(const Wanted& wanted) { return wanted.spread || wanted.deviations; }

    // The longest one of the parts that read edges.
    void set_cutoff() {
        facts_.reads_edges = false;
        for (const Part& part : parts_) {
            const StepModelFacts& own = part.model->facts();
            facts_.reads_edges |= own.reads_edges;
            facts_.wants_runs |= own.wants_runs;
        }
        for (const Part& part : parts_)
            if (part.model->facts().reads_edges == facts_.reads_edges)
                facts_.cutoff = std::max(facts_.cutoff, part.model->facts().cutoff);
    }

    void enqueue_part(const Step& step, size_t p, StepResults& results, cudaStream_t stream) {
        Part& part = parts_[p];
        const Step own = step_of(part, step, wanted_by(p, step.wanted), stream);
        StepResults& to = results_of(p, results);
        if (p > 0) {
            use_listed(to.short_edges, 1, "the results");
            to.short_edges.clear(stream);
        }
        part.model->enqueue(own, to, stream);
        part.energies = part.model->energy_view(own);
    }
    StepResults& results_of(size_t p, StepResults& results) { return p == 0 ? results : parts_[p].results; }

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

    // Of the spread of the energy, from the energies of one part, before they join those of the others.
    void join_energies(const Step& step, size_t p, StepResults& results, cudaStream_t stream) {
        const AtomResults to_sum = {step.systems, parts_[p].energies, results_of(p, results).energies.data()};
        sum_over_systems(to_sum, results.partial.data(), part_totals_.data(), stream);
        launch("the spread of the energy", join_energies_kernel, blocks_for(step.systems.system_count), kThreads,
               stream, step.systems, static_cast<const double*>(part_totals_.data()), joinings_[p], variance_step(p),
               p == 0, mean_energies_.data(), step.wanted.spread ? results.sigma_energies.data() : nullptr,
               step.wanted.deviations && p > 0 ? results.energy_deviations.data() + (p - 1) : nullptr);
    }

    void join(const Step& step, StepResults& results, cudaStream_t stream) {
        JoinedParts all;
        all.owned_count = step.edges.atom_count;
        all.atom_count = all.owned_count + step.ghost_count;
        all.element_count = element_count();
        all.energies = results.energies.data();
        all.forces = step.wanted.forces ? results.forces.data() : nullptr;
        all.virials = step.wanted.virials() ? results.virials.data() : nullptr;
        all.spread = step.wanted.spread ? results.sigma_forces.data() : nullptr;
        all.has_short_edge = results.short_edges.data();
        all.embeddings = embeddings_.data();
        for (size_t begin = 0; begin < parts_.size(); begin += kMostJoined) {
            all.begins_with_first = begin == 0;
            all.count = 0;
            for (size_t p = begin; p < std::min(begin + kMostJoined, parts_.size()); ++p) {
                const StepResults& own = results_of(p, results);
                all.parts[all.count++] = {
                    joinings_[p],
                    variance_step(p),
                    own.energies.data(),
                    own.forces.data(),
                    own.virials.data(),
                    own.short_edges.data(),
                    parts_[p].energies.of_element,
                    parts_[p].own.data(),
                    step.wanted.deviations && p > 0
                        ? results.force_deviations.data() + 3 * static_cast<int64_t>(p - 1) * all.atom_count
                        : nullptr};
            }
            launch("joining the parts", join_kernel, blocks_for(all.item_count()), kThreads, stream, all);
        }
    }

    StepModelFacts facts_;
    std::deque<Part> parts_;
    std::vector<Joining> joinings_;           // [part]
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
