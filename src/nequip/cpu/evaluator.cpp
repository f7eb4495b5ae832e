// SPDX-License-Identifier: MIT
#include "nequip/cpu/evaluator.h"

#include <algorithm>
#include <array>

#include "equivariant/cpu/atom_tiles.h"
#include "equivariant/cpu/messages.h"
#include "equivariant/cpu/moments.h"
#include "equivariant/plan/edge_work.h"
#include "nequip/plan/layer_plan.h"
#include "potential/edge_evaluator.h"

namespace mlff::nequip::cpu {
namespace {

using namespace plan;

template <class Real>
struct LayerState {
    Buffer<Real> senders;        // [atom][sender_layout.size]; [element][...] in the first layer
    Buffer<Real> gate_inputs;    // [atom][linear_layout.size], before the norm
    Buffer<Real> features;       // [atom][features_layout.size], output of the layer
    Buffer<Real> sums_gradient;  // [atom][sums_layout.size]
    Buffer<Real> features_gradient;
};

// Memory of one thread.
template <class Real>
struct Scratch {
    Buffer<Real> sums, mixed, senders_gradient;  // [atom of the tile][...]
    std::array<Real, kAtomsPerTile> densities;
    std::vector<int64_t> edge_places;
    MessageScratch<Real> message;
    MomentScratch<Real> moment;
    BatchedPass readout;
    Buffer<double> readout_gradient;
    StageLog* stages = nullptr;
};

template <class Real>
class CpuEvaluator : public EdgeEvaluator {
public:
    CpuEvaluator(std::shared_ptr<const Weights> weights, const BackendOptions& options)
        : weights_(std::move(weights)),
          kernels_(choose_kernels<Real>()),
          exact_kernels_(choose_kernels<double>()),
          first_layout_(weights_->first_irreps),
          readout_(weights_->readout, weights_->readout.layers.size()) {
        const RowLayout* below = &first_layout_;
        for (const Layer& layer : weights_->layers) {
            plans_.push_back(std::make_unique<LayerPlan<Real>>(
                *weights_, layer, *below,
                ConvolutionOptions{.exact_radial = options.exact_radial, .tables_in_blocks = true}));
            below = &plans_.back()->features_layout;
        }
        states_.resize(plans_.size());
        find_first_features();
    }

private:
    void evaluate_atoms(std::span<const SystemView> systems, const Edges& edges, std::span<const Outputs> outputs,
                        int64_t owned_count, ThreadTeam& team) override {
        Stages passes(team.stage_log(0));
        passes.begin("preparation");
        edges_.edges = &edges;
        owned_count_ = static_cast<size_t>(owned_count);
        scratch_.resize(static_cast<size_t>(team.size()));
        for (size_t worker = 0; worker < scratch_.size(); ++worker)
            scratch_[worker].stages = team.stage_log(static_cast<int>(worker));
        tiles_.sort_atoms(*weights_, systems, owned_count_, edges_);
        passes.begin("pass over edges");
        sort_edges(team);
        passes.begin("tables");
        for (auto& plan : plans_) plan->prepare(tiles_.elements_present(), team);
        passes.begin("pass over atoms");
        for (size_t i = 0; i < plans_.size(); ++i) compute_layer(i, team);
        compute_energies(team);
        const bool wants_gradients = std::any_of(
            outputs.begin(), outputs.end(), [](const Outputs& o) { return o.forces || o.virial || o.atom_virials; });
        if (wants_gradients) {
            passes.begin("zeros for gradients");
            start_gradients();
            passes.begin("pass over atoms");
            for (size_t i = plans_.size(); i-- > 0;) reverse_layer(i, team);
        }
        // Results are written last, when nothing can fail.
        passes.begin("energies");
        write_energies(systems, outputs);
        write_descriptors(systems, outputs);
        if (!wants_gradients) return;
        passes.begin("forces");
        write_edge_results(systems, edges, edges_.vector_gradient.data(), outputs, team);
    }

    // ---- atoms and edges ----

    void sort_edges(ThreadTeam& team) {
        tiles_.start_edges(edges_);
        const bool by_atom = plans_.front()->moments.has_value();
        for_each_tile(team, [&](const AtomTile& tile, Scratch<Real>& scratch) {
            Stages stages(scratch.stages, Direction::forward);
            stages.begin("order of edges");
            tiles_.sort_edges(tile, weights_->cutoff, by_atom, edges_, scratch.edge_places);
        });
    }

    template <class Work>
    void for_each_tile(ThreadTeam& team, const Work& work) {
        team.run(static_cast<int64_t>(tiles_.tiles().size()), [&](int64_t tile, int worker) {
            work(tiles_.tiles()[static_cast<size_t>(tile)], scratch_[static_cast<size_t>(worker)]);
        });
    }
    size_t atom_count() const { return edges_.elements.size(); }

    static Real* resized(Buffer<Real>& buffer, size_t rows, int size) {
        buffer.resize_discard(rows * static_cast<size_t>(size));
        return buffer.data();
    }
    static DomainRows domain_rows(Buffer<Real>& rows, int size) {
        return {rows.data(), static_cast<size_t>(size) * sizeof(Real)};
    }
    template <class T>
    AtomRows<T> rows_of(const AtomTile& tile, T* first, int stride) const {
        return {first, stride, tiles_.atoms(tile)};
    }
    static Stages stages_of(Scratch<Real>& scratch, Direction direction, size_t layer) {
        return Stages(scratch.stages, direction, static_cast<int>(layer));
    }

    // ---- features ----

    // All atoms of an element have the same first features, and send the same in the first layer.
    void find_first_features() {
        const auto element_count = static_cast<size_t>(weights_->element_count()),
                   width = static_cast<size_t>(weights_->first_irreps.dimension());
        const LayerPlan<Real>& plan = *plans_.front();
        Real* features = resized(first_features_, element_count, first_layout_.size);
        Real* senders = resized(states_.front().senders, element_count, plan.sender_layout.size);
        std::vector<double> sent(static_cast<size_t>(plan.layer.up.out.dimension()));
        for (size_t element = 0; element < element_count; ++element) {
            const double* first = weights_->first_features.data() + element * width;
            to_rows(weights_->first_irreps, first_layout_, first,
                    features + element * static_cast<size_t>(first_layout_.size));
            compute_linear(plan.layer.up, static_cast<int>(element), first, sent.data());
            to_rows(plan.layer.up.out, plan.sender_layout, sent.data(),
                    senders + element * static_cast<size_t>(plan.sender_layout.size));
        }
    }

    static void add_bias(const Buffer<Real>& bias, AtomRows<Real> rows, int count) {
        for (int i = 0; i < count && !bias.empty(); ++i)
            for (size_t k = 0; k < bias.size(); ++k) rows[i][k] += bias[k];
    }

    void compute_senders(size_t layer, int element, AtomRows<const Real> below, const int64_t* atoms, int count) {
        const LayerPlan<Real>& plan = *plans_[layer];
        const AtomRows<Real> senders = {states_[layer].senders.data(), plan.sender_layout.size, atoms};
        plan.up.apply(kernels_, element, below, senders, count, false);
        add_bias(plan.up_bias, senders, count);
    }

    LayerInput<Real> input_of(size_t layer) const {
        const LayerPlan<Real>& plan = *plans_[layer];
        const int* elements = layer == 0 ? edges_.elements.data() : nullptr;
        return {plan, kernels_, exact_kernels_, {states_[layer].senders.data(), plan.sender_layout.size, elements}, {}};
    }
    AtomRows<const Real> features_of(size_t layer, const AtomTile& tile) const {
        return rows_of<const Real>(tile, states_[layer].features.data(), plans_[layer]->features_layout.size);
    }
    AtomRows<const Real> features_below(size_t layer, const AtomTile& tile) const {
        if (layer == 0) return {first_features_.data() + tile.element * first_layout_.size, 0};
        return features_of(layer - 1, tile);
    }
    AtomRows<Real> gradient_of(size_t layer, const AtomTile& tile) {
        return rows_of<Real>(tile, states_[layer].features_gradient.data(), plans_[layer]->features_layout.size);
    }

    // Counts the maps of all elements present, since atoms usually have neighbours of all of them.
    StageWork messages_and_map_work(const LayerPlan<Real>& plan, const AtomTile& tile, bool is_reverse) const {
        StageWork sum = moments_work(plan, is_reverse) * tiles_.edge_count(tile, edges_);
        for (int element : tiles_.elements_present()) sum = sum + plan.moments->of(element).work(tile.count());
        return sum;
    }

    // ---- forward ----

    void compute_layer(size_t layer, ThreadTeam& team) {
        const LayerPlan<Real>& plan = *plans_[layer];
        LayerState<Real>& state = states_[layer];
        const bool has_next = layer + 1 < plans_.size();
        resized(state.gate_inputs, owned_count_, plan.linear_layout.size);
        resized(state.features, owned_count_, plan.features_layout.size);
        if (has_next) resized(states_[layer + 1].senders, atom_count(), plans_[layer + 1]->sender_layout.size);
        for (Scratch<Real>& scratch : scratch_) reserve(plan, scratch);
        for_each_tile(team, [&](const AtomTile& tile, Scratch<Real>& scratch) {
            const int count = tile.count();
            const AtomRows<Real> features = rows_of<Real>(tile, state.features.data(), plan.features_layout.size);
            compute_gate_inputs(layer, tile, scratch);
            Stages stages = stages_of(scratch, Direction::forward, layer);
            stages.begin("gate", [&] { return plan.gate.work(count, false); });
            const AtomRows<Real> inputs = rows_of<Real>(tile, state.gate_inputs.data(), plan.linear_layout.size);
            for (int i = 0; i < count; ++i) {
                if (plan.norm) plan.norm->apply(inputs[i], scratch.mixed.data());
                plan.gate.apply(plan.norm ? scratch.mixed.data() : inputs[i], features[i]);
            }
            stages.finish();
            if (!has_next) return;
            Stages stages_of_next = stages_of(scratch, Direction::forward, layer + 1);
            stages_of_next.begin("what atoms send", [&] { return plans_[layer + 1]->up.work(count); });
            compute_senders(layer + 1, tile.element, features_of(layer, tile), tiles_.atoms(tile), count);
        });
        if (!has_next) return;
        const DomainRows rows[] = {domain_rows(states_[layer + 1].senders, plans_[layer + 1]->sender_layout.size)};
        fill_ghosts(rows);
    }

    // Messages and self connection.
    void compute_gate_inputs(size_t layer, const AtomTile& tile, Scratch<Real>& scratch) {
        const LayerPlan<Real>& plan = *plans_[layer];
        const int count = tile.count(), size = plan.linear_layout.size;
        Stages stages = stages_of(scratch, Direction::forward, layer);
        const AtomRows<Real> mixed = {scratch.mixed.data(), size};
        if (plan.moments) {
            stages.begin("moments and messages", [&] { return messages_and_map_work(plan, tile, false); });
            compute_moment_messages(input_of(layer), edges_, tiles_.elements_present(), {tiles_.atoms(tile), count},
                                    scratch.moment, scratch.mixed.data(), scratch.densities.data());
        } else {
            stages.begin("messages", [&] { return messages_work(plan, false) * tiles_.edge_count(tile, edges_); });
            for (int group = 0; group < tile.group_count(); ++group) {
                const int first = group * kAtomsPerGroup;
                sum_messages(input_of(layer), edges_, tiles_.group(tile, group, edges_), tile.member_count(group),
                             scratch.message, scratch.sums.data() + first * plan.sums_layout.size,
                             scratch.densities.data() + first);
            }
            stages.begin("linear map of messages", [&] { return plan.message.work(count); });
            plan.message.apply(kernels_, tile.element, {scratch.sums.data(), plan.sums_layout.size}, mixed, count,
                               false);
        }
        add_bias(plan.message_bias, mixed, count);
        stages.begin("self connection", [&] { return plan.self_connection.work(count); });
        plan.self_connection.apply(kernels_, tile.element, features_below(layer, tile), mixed, count, true);
        const AtomRows<Real> inputs = rows_of<Real>(tile, states_[layer].gate_inputs.data(), size);
        for (int i = 0; i < count; ++i) std::copy_n(mixed[i], size, inputs[i]);
    }

    void reserve(const LayerPlan<Real>& plan, Scratch<Real>& scratch) {
        resized(scratch.sums, kAtomsPerTile, std::max(plan.sums_layout.size, plan.linear_layout.size));
        resized(scratch.mixed, kAtomsPerTile, plan.linear_layout.size);
        resized(scratch.senders_gradient, kAtomsPerTile, plan.sender_layout.size);
        scratch.message.reserve(plan);
    }

    // ---- energies ----

    // Sets the input of the readout to the scalars of the last layer.
    void start_readout(const AtomTile& tile, Scratch<Real>& scratch) {
        const size_t last = plans_.size() - 1;
        const AtomRows<const Real> features = features_of(last, tile);
        readout_.start(scratch.readout, tile.count());
        for (int i = 0; i < tile.count(); ++i) {
            double* to = scratch.readout.input.data() + i * readout_.in_stride();
            for_each_scalar_block(
                last, [&](const RowBlock& block) { to = std::copy_n(features[i] + block.offset, block.copies, to); });
        }
        readout_.compute(exact_kernels_, scratch.readout, tile.count(), false);
    }
    // visit(block) for the blocks of invariant scalars (0e) of a layer's features.
    template <class Visit>
    void for_each_scalar_block(size_t layer, const Visit& visit) const {
        const Irreps& irreps = plans_[layer]->layer.gate.out;
        for (int b = 0; b < irreps.block_count(); ++b)
            if (irreps[b].irrep.is_scalar()) visit(plans_[layer]->features_layout.blocks[static_cast<size_t>(b)]);
    }

    void compute_energies(ThreadTeam& team) {
        readout_energy_.resize(owned_count_);
        for_each_tile(team, [&](const AtomTile& tile, Scratch<Real>& scratch) {
            Stages stages(scratch.stages, Direction::forward);
            stages.begin("readout");
            start_readout(tile, scratch);
            for (int i = 0; i < tile.count(); ++i)
                readout_energy_[static_cast<size_t>(tiles_.atom_at(tile.begin + i))] =
                    scratch.readout.layers.back().output[static_cast<size_t>(i * readout_.out_stride())];
        });
    }

    void write_energies(std::span<const SystemView> systems, std::span<const Outputs> outputs) {
        for_each_system(systems, [&](size_t s, int64_t begin, int64_t end) {
            end = std::min(end, static_cast<int64_t>(owned_count_));
            double sum = 0;
            for (int64_t atom = begin; atom < end; ++atom) {
                const auto element = static_cast<size_t>(edges_.element(atom));
                const double energy =
                    weights_->shift[element] + weights_->scale[element] * readout_energy_[static_cast<size_t>(atom)];
                if (outputs[s].atom_energies) outputs[s].atom_energies[atom - begin] = energy;
                sum += energy;
            }
            if (outputs[s].energy) *outputs[s].energy = sum;
        });
    }

    void write_descriptors(std::span<const SystemView> systems, std::span<const Outputs> outputs) const {
        for_each_system(systems, [&](size_t s, int64_t begin, int64_t end) {
            double* next = outputs[s].descriptors;
            if (!next) return;
            for (int64_t atom = begin; atom < std::min(end, static_cast<int64_t>(owned_count_)); ++atom)
                for (size_t i = 0; i < plans_.size(); ++i) {
                    const Real* features = states_[i].features.data() + atom * plans_[i]->features_layout.size;
                    for_each_scalar_block(i, [&](const RowBlock& block) {
                        next = std::copy_n(features + block.offset, block.copies, next);
                    });
                }
        });
    }

    // ---- reverse ----

    void start_gradients() {
        edges_.vector_gradient.resize_discard(3 * static_cast<size_t>(edges_.edges->edge_count));
        std::fill(edges_.vector_gradient.begin(), edges_.vector_gradient.end(), 0.0);
        for (size_t i = 0; i < plans_.size(); ++i) {
            Buffer<Real>& gradient = states_[i].features_gradient;
            resized(gradient, owned_count_, plans_[i]->features_layout.size);
            std::fill(gradient.begin(), gradient.end(), Real(0));
        }
    }

    void reverse_layer(size_t layer, ThreadTeam& team) {
        const LayerPlan<Real>& plan = *plans_[layer];
        LayerState<Real>& state = states_[layer];
        if (!plan.moments) resized(state.sums_gradient, atom_count(), plan.sums_layout.size);
        for (Scratch<Real>& scratch : scratch_) reserve(plan, scratch);
        for_each_tile(team, [&](const AtomTile& tile, Scratch<Real>& scratch) { reverse_atoms(layer, tile, scratch); });
        if (plan.moments) return;
        const DomainRows rows[] = {domain_rows(state.sums_gradient, plan.sums_layout.size)};
        fill_ghosts(rows);
        for_each_tile(team,
                      [&](const AtomTile& tile, Scratch<Real>& scratch) { reverse_messages(layer, tile, scratch); });
    }

    // From the gradient of the layer's features to that of its summed messages (or, with moments, of edge vectors) and,
    // through the self connection, to that of the features below.
    void reverse_atoms(size_t layer, const AtomTile& tile, Scratch<Real>& scratch) {
        const LayerPlan<Real>& plan = *plans_[layer];
        const int count = tile.count(), size = plan.linear_layout.size;
        Stages stages = stages_of(scratch, Direction::reverse, layer);
        if (layer + 1 == plans_.size()) {
            stages.begin("readout");
            reverse_readout(tile, scratch);
        }
        stages.begin("gate", [&] { return plan.gate.work(count, true); });
        const AtomRows<Real> gradient = {scratch.mixed.data(), size};
        const AtomRows<Real> by_features = gradient_of(layer, tile);
        const auto inputs = rows_of<const Real>(tile, states_[layer].gate_inputs.data(), size);
        for (int i = 0; i < count; ++i) {
            const Real* input = inputs[i];
            if (plan.norm) {
                plan.norm->apply(input, scratch.sums.data());
                input = scratch.sums.data();
            }
            plan.gate.reverse(input, by_features[i], gradient[i]);
            if (plan.norm) plan.norm->reverse(inputs[i], gradient[i]);
        }
        const AtomRows<const Real> by_inputs = {scratch.mixed.data(), size};
        if (layer > 0) {
            stages.begin("self connection", [&] { return plan.self_connection.work(count); });
            plan.self_connection.apply_transposed(kernels_, tile.element, by_inputs, gradient_of(layer - 1, tile),
                                                  count, true);
        }
        if (plan.moments) {
            stages.begin("moments and messages", [&] { return messages_and_map_work(plan, tile, true); });
            reverse_moment_messages(input_of(layer), tiles_.elements_present(), {tiles_.atoms(tile), count},
                                    scratch.mixed.data(), no_densities_.data(), scratch.moment, edges_);
            return;
        }
        stages.begin("linear map of messages", [&] { return plan.message.work(count); });
        plan.message.apply_transposed(kernels_, tile.element, by_inputs,
                                      rows_of<Real>(tile, states_[layer].sums_gradient.data(), plan.sums_layout.size),
                                      count, false);
    }

    void reverse_readout(const AtomTile& tile, Scratch<Real>& scratch) {
        const size_t last = plans_.size() - 1;
        start_readout(tile, scratch);
        scratch.readout_gradient.resize_discard(static_cast<size_t>(tile.count() * readout_.out_stride()));
        std::fill(scratch.readout_gradient.begin(), scratch.readout_gradient.end(), 0.0);
        for (int i = 0; i < tile.count(); ++i)
            scratch.readout_gradient[static_cast<size_t>(i * readout_.out_stride())] =
                weights_->scale[static_cast<size_t>(tile.element)];
        const double* from =
            readout_.reverse(exact_kernels_, scratch.readout, tile.count(), scratch.readout_gradient.data());
        const AtomRows<Real> gradient = gradient_of(last, tile);
        for (int i = 0; i < tile.count(); ++i) {
            const double* next = from + i * readout_.in_stride();
            for_each_scalar_block(last, [&](const RowBlock& block) {
                for (int u = 0; u < block.copies; ++u) gradient[i][block.offset + u] = static_cast<Real>(*next++);
            });
        }
    }

    // From the gradient of the summed messages to that of edge vectors and of the features below.
    void reverse_messages(size_t layer, const AtomTile& tile, Scratch<Real>& scratch) {
        const LayerPlan<Real>& plan = *plans_[layer];
        const LayerInput<Real> input = input_of(layer);
        const LayerGradients<Real> gradients = {states_[layer].sums_gradient.data(), nullptr};
        const int size = plan.sender_layout.size;
        Stages stages = stages_of(scratch, Direction::reverse, layer);
        stages.begin("messages", [&] { return messages_work(plan, true) * tiles_.edge_count(tile, edges_); });
        if (layer > 0) std::fill_n(scratch.senders_gradient.data(), tile.count() * size, Real(0));
        for (int group = 0; group < tile.group_count(); ++group)
            reverse_sent_messages<Real>(
                input, gradients, tiles_.group(tile, group, edges_), scratch.message, edges_,
                layer > 0 ? scratch.senders_gradient.data() + group * kAtomsPerGroup * size : nullptr, nullptr);
        if (layer == 0) return;
        stages.begin("what atoms send", [&] { return plan.up.work(tile.count()); });
        plan.up.apply_transposed(kernels_, tile.element, {scratch.senders_gradient.data(), size},
                                 gradient_of(layer - 1, tile), tile.count(), true);
    }

    std::shared_ptr<const Weights> weights_;
    const KernelTable<Real>& kernels_;
    const KernelTable<double>& exact_kernels_;
    RowLayout first_layout_;
    std::vector<std::unique_ptr<LayerPlan<Real>>> plans_;
    std::vector<LayerState<Real>> states_;
    BatchedNetwork readout_;
    Buffer<Real> first_features_;  // [element][first_layout_.size]
    std::vector<Scratch<Real>> scratch_;

    size_t owned_count_ = 0;  // all atoms except ghosts
    EdgeState edges_;
    AtomTiles tiles_;
    std::vector<double> readout_energy_;              // [atom]
    std::array<Real, kAtomsPerTile> no_densities_{};  // gradients of densities, of which this family has none
};

}  // namespace

std::unique_ptr<Evaluator> make_cpu_evaluator(std::shared_ptr<const Weights> weights, const BackendOptions& options) {
    if (options.is_single()) return std::make_unique<CpuEvaluator<float>>(std::move(weights), options);
    return std::make_unique<CpuEvaluator<double>>(std::move(weights), options);
}

}  // namespace mlff::nequip::cpu
