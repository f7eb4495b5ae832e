// SPDX-License-Identifier: MIT
#include "mace/cpu/evaluator.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "equivariant/cpu/atom_tiles.h"
#include "equivariant/cpu/messages.h"
#include "equivariant/cpu/moments.h"
#include "equivariant/plan/edge_work.h"
#include "mace/cpu/readout_plan.h"
#include "mace/functions/embedding.h"
#include "mace/functions/pair_repulsion.h"
#include "mace/plan/layer_plan.h"
#include "potential/edge_evaluator.h"

namespace mlff::mace::cpu {
namespace {

template <class Real>
struct LayerState {
    Buffer<Real> senders;           // [atom][sender_layout.size]; [element][...] in the first layer
    Buffer<Real> down;              // the same for the features that the radial networks take
    Buffer<Real> messages;          // [atom][message_layout.size], input of the contraction
    Buffer<Real> features;          // [atom][features_layout.size], output of the layer
    Buffer<Real> divisors;          // [atom]
    Buffer<Real> gate_inputs;       // [atom][linear_layout.size], if there is a gate
    Buffer<Real> senders_gradient;  // [atom][sender_layout.size]
    Buffer<Real> sums_gradient;     // [atom][sums_layout.size]
    Buffer<Real> features_gradient;
    Buffer<Real> density_gradient;  // [atom]
};

// Memory of one thread.
template <class Real>
struct Scratch {
    Buffer<Real> sums, messages, gated, contracted, features;  // [atom of the tile][...]
    Buffer<Real> senders_gradient, down_gradient;              // [atom of the tile][...]
    std::array<Real, kAtomsPerTile> densities;
    Buffer<Real> polynomial;
    typename ReadoutPlan<Real>::Scratch readout;
    std::vector<int64_t> edge_places;
    MessageScratch<Real> message;
    MomentScratch<Real> moment;
    StageLog* stages = nullptr;
};

template <class Real>
class CpuEvaluator : public EdgeEvaluator {
public:
    CpuEvaluator(std::shared_ptr<const Weights> weights, const BackendOptions& options)
        : weights_(std::move(weights)),
          head_(options.head),
          kernels_(choose_kernels<Real>()),
          exact_kernels_(choose_kernels<double>()) {
        const RowLayout* below = &first_layout_;
        Irreps scalars;
        scalars.append(weights_->channel_count, Irrep{});
        first_layout_ = RowLayout(scalars);
        for (const Layer& layer : weights_->layers) {
            plans_.push_back(std::make_unique<LayerPlan<Real>>(
                *weights_, layer, *below,
                LayerOptions{.exact_radial = options.exact_radial, .tables_in_blocks = true}));
            below = &plans_.back()->features_layout;
        }
        states_.resize(plans_.size());
        for (const Readout& readout : weights_->readouts)
            readouts_.emplace_back(readout, head_, plans_[static_cast<size_t>(readout.layer)]->features_layout);
    }

    // First features are stored by element, so all systems of a batch need the same charge and spin.
    bool can_batch(const SystemView& first, const SystemView& next) const override {
        return !weights_->joint_embedding ||
               (first.total_charge == next.total_charge && first.spin_multiplicity == next.spin_multiplicity);
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
        passes.begin("first features");
        compute_first_features(systems.front());
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
            if (weights_->repulsion) add_repulsion_gradients(team);
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
    int64_t atom_at(int64_t place) const { return tiles_.atom_at(place); }
    size_t atom_count() const { return edges_.elements.size(); }

    static DomainRows domain_rows(Buffer<Real>& rows, int size) {
        return {rows.data(), static_cast<size_t>(size) * sizeof(Real)};
    }

    template <class T>
    AtomRows<T> rows_of(const AtomTile& tile, T* first, int stride) const {
        return {first, stride, tiles_.atoms(tile)};
    }

    // ---- features ----

    // All atoms of an element have the same first features.
    void compute_first_features(const SystemView& system) {
        compute_embedding(*weights_, system, tiles_.elements_present(), embedding_);
        const auto width = static_cast<size_t>(weights_->channel_count);
        const int element_count = weights_->element_count();
        const AtomRows<Real> rows = {resized(first_features_, static_cast<size_t>(element_count), first_layout_.size),
                                     first_layout_.size};
        std::fill(first_features_.begin(), first_features_.end(), Real(0));
        for (size_t i = 0; i < tiles_.elements_present().size(); ++i)
            for (size_t u = 0; u < width; ++u)
                rows[tiles_.elements_present()[i]][u] = static_cast<Real>(embedding_[i * width + u]);
        compute_senders(0, 0, {rows.first, rows.stride}, nullptr, element_count);
    }

    static Real* resized(Buffer<Real>& buffer, size_t rows, int size) {
        buffer.resize_discard(rows * static_cast<size_t>(size));
        return buffer.data();
    }

    // Computes what atoms send in the layer from the features below. Row i of the result is that of atoms[i].
    void compute_senders(size_t layer, int element, AtomRows<const Real> below, const int64_t* atoms, int count) {
        const LayerPlan<Real>& plan = *plans_[layer];
        if (layer == 0) reserve_senders(0, static_cast<size_t>(count));
        plan.up.apply(kernels_, element, below, {states_[layer].senders.data(), plan.sender_layout.size, atoms}, count,
                      false);
        if (plan.down)
            plan.down->apply(kernels_, element, below, {states_[layer].down.data(), plan.down->out_size(), atoms},
                             count, false);
    }

    void reserve_senders(size_t layer, size_t rows) {
        resized(states_[layer].senders, rows, plans_[layer]->sender_layout.size);
        if (plans_[layer]->down) resized(states_[layer].down, rows, plans_[layer]->down->out_size());
    }

    LayerInput<Real> input_of(size_t layer) const {
        const LayerPlan<Real>& plan = *plans_[layer];
        const int* elements = layer == 0 ? edges_.elements.data() : nullptr;
        LayerInput<Real> input = {
            plan, kernels_, exact_kernels_, {states_[layer].senders.data(), plan.sender_layout.size, elements}, {}};
        if (plan.down) input.down = {states_[layer].down.data(), plan.down->out_size(), elements};
        return input;
    }

    AtomRows<const Real> features_of(size_t layer, const AtomTile& tile) const {
        return rows_of<const Real>(tile, states_[layer].features.data(), plans_[layer]->features_layout.size);
    }
    AtomRows<const Real> features_below(size_t layer, const AtomTile& tile) const {
        if (layer == 0) return {first_features_.data() + tile.element * first_layout_.size, 0};
        return features_of(layer - 1, tile);
    }
    AtomRows<const Real> sender_rows(size_t layer, const AtomTile& tile) const {
        const int size = plans_[layer]->sender_layout.size;
        if (layer == 0) return {states_[0].senders.data() + tile.element * size, 0};
        return rows_of<const Real>(tile, states_[layer].senders.data(), size);
    }
    AtomRows<Real> gradient_below(size_t layer, const AtomTile& tile) {
        return rows_of<Real>(tile, states_[layer - 1].features_gradient.data(),
                             plans_[layer - 1]->features_layout.size);
    }

    static Stages stages_of(Scratch<Real>& scratch, Direction direction, size_t layer) {
        return Stages(scratch.stages, direction, static_cast<int>(layer));
    }
    // Counts the maps of all elements present, since atoms usually have neighbours of all of them.
    StageWork moment_maps_work(const LayerPlan<Real>& plan, const AtomTile& tile) const {
        StageWork sum;
        for (int element : tiles_.elements_present()) sum = sum + plan.moments->of(element).work(tile.count());
        return sum;
    }

    // ---- forward ----

    void compute_layer(size_t layer, ThreadTeam& team) {
        const LayerPlan<Real>& plan = *plans_[layer];
        LayerState<Real>& state = states_[layer];
        const bool has_next = layer + 1 < plans_.size();
        resized(state.messages, owned_count_, plan.message_layout.size);
        resized(state.features, owned_count_, plan.features_layout.size);
        state.divisors.resize_discard(owned_count_);
        if (plan.gate) resized(state.gate_inputs, owned_count_, plan.linear_layout.size);
        if (has_next) reserve_senders(layer + 1, atom_count());
        for (Scratch<Real>& scratch : scratch_) reserve(plan, scratch);
        for_each_tile(team, [&](const AtomTile& tile, Scratch<Real>& scratch) {
            const int count = tile.count(), message_size = plan.message_layout.size,
                      features_size = plan.features_layout.size;
            Stages stages = stages_of(scratch, Direction::forward, layer);
            compute_scaled_messages(layer, tile, scratch);
            const Real* messages = scratch.messages.data();
            if (plan.gate) {
                stages.begin("gate", [&] { return plan.gate->work(count, false, true); });
                compute_gate(layer, tile, scratch);
                messages = scratch.sums.data();
            }
            if (plan.message_skip) {
                stages.begin("self connection of messages", [&] { return plan.message_skip->work(count); });
                plan.message_skip->apply(kernels_, tile.element, {messages, message_size},
                                         {scratch.gated.data(), message_size}, count, false);
                messages = scratch.gated.data();
            }
            stages.begin("contraction", [&] { return plan.contraction.work(count, false); });
            plan.contraction.apply(kernels_, tile.element, messages, scratch.contracted.data(), count,
                                   scratch.polynomial);
            stages.begin("linear maps", [&] {
                return plan.skip ? plan.linear.work(count) + plan.skip->work(count) : plan.linear.work(count);
            });
            const AtomRows<Real> features = {scratch.features.data(), features_size};
            plan.linear.apply(kernels_, tile.element, {scratch.contracted.data(), plan.contraction.out_size()},
                              features, count, false);
            if (plan.skip) plan.skip->apply(kernels_, tile.element, features_below(layer, tile), features, count, true);
            for (int i = 0; i < count; ++i) {
                const int64_t atom = atom_at(tile.begin + i);
                std::copy_n(messages + i * message_size, message_size, state.messages.data() + atom * message_size);
                std::copy_n(features[i], features_size, state.features.data() + atom * features_size);
            }
            stages.finish();
            Stages stages_of_next = stages_of(scratch, Direction::forward, layer + 1);
            if (has_next) stages_of_next.begin("what atoms send", [&] { return senders_work(layer + 1, count); });
            if (has_next)
                compute_senders(layer + 1, tile.element, {features.first, features.stride}, tiles_.atoms(tile), count);
        });
        if (!has_next) return;
        const LayerPlan<Real>& next = *plans_[layer + 1];
        const DomainRows rows[] = {domain_rows(states_[layer + 1].senders, next.sender_layout.size),
                                   domain_rows(states_[layer + 1].down, next.down ? next.down->out_size() : 0)};
        fill_ghosts({rows, next.down ? size_t{2} : size_t{1}});
    }

    StageWork senders_work(size_t layer, int count) const {
        const LayerPlan<Real>& plan = *plans_[layer];
        return plan.down ? plan.up.work(count) + plan.down->work(count) : plan.up.work(count);
    }

    // Sums the messages, applies the linear map and divides. The result is in scratch.messages.
    void compute_scaled_messages(size_t layer, const AtomTile& tile, Scratch<Real>& scratch) {
        const LayerPlan<Real>& plan = *plans_[layer];
        const Interaction& interaction = plan.layer.interaction;
        const int size = plan.linear_layout.size;
        Stages stages = stages_of(scratch, Direction::forward, layer);
        if (plan.moments) {
            stages.begin("moments and messages", [&] {
                return moments_work(plan, false) * tiles_.edge_count(tile, edges_) + moment_maps_work(plan, tile);
            });
            compute_moment_messages(input_of(layer), edges_, tiles_.elements_present(),
                                    {tiles_.atoms(tile), tile.count()}, scratch.moment, scratch.messages.data(),
                                    scratch.densities.data());
        } else {
            stages.begin("messages", [&] { return messages_work(plan, false) * tiles_.edge_count(tile, edges_); });
            for (int group = 0; group < tile.group_count(); ++group) {
                const int first = group * kAtomsPerGroup;
                sum_messages(input_of(layer), edges_, tiles_.group(tile, group, edges_), tile.member_count(group),
                             scratch.message, scratch.sums.data() + first * plan.sums_layout.size,
                             scratch.densities.data() + first);
            }
            stages.begin("linear map of messages", [&] { return plan.message.work(tile.count()); });
            plan.message.apply(kernels_, tile.element, {scratch.sums.data(), plan.sums_layout.size},
                               {scratch.messages.data(), size}, tile.count(), false);
        }
        for (int i = 0; i < tile.count(); ++i) {
            const Real divisor =
                static_cast<Real>(interaction.divisor_constant) +
                static_cast<Real>(interaction.divisor_density) * scratch.densities[static_cast<size_t>(i)];
            states_[layer].divisors[static_cast<size_t>(atom_at(tile.begin + i))] = divisor;
            for (int k = 0; k < size; ++k) scratch.messages[static_cast<size_t>(i * size + k)] *= 1 / divisor;
        }
    }

    // Input: scratch.messages of compute_scaled_messages(). Output: messages in scratch.sums.
    void compute_gate(size_t layer, const AtomTile& tile, Scratch<Real>& scratch) {
        const LayerPlan<Real>& plan = *plans_[layer];
        const int count = tile.count(), in_size = plan.linear_layout.size, out_size = plan.gate->out_layout.size;
        plan.gate->residual.apply(kernels_, tile.element, sender_rows(layer, tile), {scratch.messages.data(), in_size},
                                  count, true);
        for (int i = 0; i < count; ++i) {
            const Real* input = scratch.messages.data() + i * in_size;
            std::copy_n(input, in_size, states_[layer].gate_inputs.data() + atom_at(tile.begin + i) * in_size);
            plan.gate->apply(input, scratch.gated.data() + i * out_size);
        }
        plan.gate->after.apply(kernels_, tile.element, {scratch.gated.data(), out_size},
                               {scratch.sums.data(), plan.message_layout.size}, count, false);
    }

    void reserve(const LayerPlan<Real>& plan, Scratch<Real>& scratch) {
        const int gate_size = plan.gate ? std::max(plan.linear_layout.size, plan.gate->out_layout.size) : 0;
        const int widest = std::max({plan.sums_layout.size, plan.message_layout.size, plan.contraction.out_size(),
                                     plan.features_layout.size, gate_size});
        for (Buffer<Real>* buffer :
             {&scratch.sums, &scratch.messages, &scratch.gated, &scratch.contracted, &scratch.features})
            resized(*buffer, kAtomsPerTile, widest);
        resized(scratch.senders_gradient, kAtomsPerTile, plan.sender_layout.size);
        if (plan.down) resized(scratch.down_gradient, kAtomsPerTile, plan.down->out_size());
        scratch.message.reserve(plan);
    }

    // ---- energies ----

    void compute_energies(ThreadTeam& team) {
        interaction_energy_.assign(owned_count_, 0.0);
        for_each_tile(team, [&](const AtomTile& tile, Scratch<Real>& scratch) {
            Stages stages(scratch.stages, Direction::forward);
            stages.begin("readouts");
            std::array<double, kAtomsPerTile> energies{};
            for (size_t i = 0; i < readouts_.size(); ++i) {
                const auto layer = static_cast<size_t>(weights_->readouts[i].layer);
                readouts_[i].compute(exact_kernels_, features_of(layer, tile), tile.count(), scratch.readout,
                                     energies.data());
            }
            for (int64_t place = tile.begin; place < tile.end; ++place) {
                const int64_t atom = atom_at(place);
                double energy = energies[static_cast<size_t>(place - tile.begin)];
                if (weights_->repulsion)
                    for (int64_t edge = edges_.edges->first[atom]; edge < edges_.edges->first[atom + 1]; ++edge)
                        energy += pair_repulsion(*weights_->repulsion, *weights_, edges_.sender_element(edge),
                                                 tile.element, edges_.edges->distance[edge])
                                      .value;
                interaction_energy_[static_cast<size_t>(atom)] = energy;
            }
        });
    }

    void write_energies(std::span<const SystemView> systems, std::span<const Outputs> outputs) {
        energy_of_embedding_.assign(static_cast<size_t>(weights_->element_count()), 0.0);
        for (size_t i = 0; i < tiles_.elements_present().size(); ++i)
            energy_of_embedding_[static_cast<size_t>(tiles_.elements_present()[i])] =
                embedding_energy(*weights_, head_, tiles_.elements_present()[i],
                                 embedding_.data() + i * static_cast<size_t>(weights_->channel_count));
        for_each_system(systems, [&](size_t s, int64_t begin, int64_t end) {
            end = std::min(end, static_cast<int64_t>(owned_count_));
            double sum = 0;
            for (int64_t atom = begin; atom < end; ++atom)
                sum += energy_of_embedding_[static_cast<size_t>(edges_.element(atom))];
            for (int64_t atom = begin; atom < end; ++atom) {
                const double energy =
                    atom_energy(*weights_, head_, edges_.element(atom), interaction_energy_[static_cast<size_t>(atom)]);
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
                    const RowLayout& layout = plans_[i]->features_layout;
                    const Irreps& irreps = plans_[i]->layer.linear.out;
                    const Real* features = states_[i].features.data() + atom * layout.size;
                    for (size_t b = 0; b < layout.blocks.size(); ++b)
                        if (irreps[static_cast<int>(b)].irrep.is_scalar())
                            next = std::copy_n(features + layout.blocks[b].offset, layout.blocks[b].copies, next);
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
        if (plan.gate) resized(state.senders_gradient, owned_count_, plan.sender_layout.size);
        state.density_gradient.resize_discard(atom_count());
        for (Scratch<Real>& scratch : scratch_) reserve(plan, scratch);
        for_each_tile(team, [&](const AtomTile& tile, Scratch<Real>& scratch) { reverse_atoms(layer, tile, scratch); });
        if (plan.moments) return;
        const DomainRows rows[] = {domain_rows(state.sums_gradient, plan.sums_layout.size),
                                   domain_rows(state.density_gradient, 1)};
        fill_ghosts({rows, plan.columns.density >= 0 ? size_t{2} : size_t{1}});
        for_each_tile(team,
                      [&](const AtomTile& tile, Scratch<Real>& scratch) { reverse_messages(layer, tile, scratch); });
    }

    // From the gradient of the layer's features to that of its summed messages and, through the skip, to that of the
    // features below.
    void reverse_atoms(size_t layer, const AtomTile& tile, Scratch<Real>& scratch) {
        const LayerPlan<Real>& plan = *plans_[layer];
        LayerState<Real>& state = states_[layer];
        const int count = tile.count(), message_size = plan.message_layout.size;
        Stages stages = stages_of(scratch, Direction::reverse, layer);
        stages.begin("readouts");
        for (size_t i = 0; i < readouts_.size(); ++i)
            if (static_cast<size_t>(weights_->readouts[i].layer) == layer)
                readouts_[i].reverse(exact_kernels_, features_of(layer, tile), count,
                                     weights_->scale[static_cast<size_t>(head_)], scratch.readout,
                                     rows_of<Real>(tile, state.features_gradient.data(), plan.features_layout.size));
        for (int i = 0; i < count; ++i) {
            const int64_t atom = atom_at(tile.begin + i);
            std::copy_n(state.messages.data() + atom * message_size, message_size,
                        scratch.messages.data() + i * message_size);
        }
        const auto features_gradient =
            rows_of<const Real>(tile, state.features_gradient.data(), plan.features_layout.size);
        stages.begin("linear maps", [&] {
            return plan.skip && layer > 0 ? plan.linear.work(count) + plan.skip->work(count) : plan.linear.work(count);
        });
        if (plan.skip && layer > 0)
            plan.skip->apply_transposed(kernels_, tile.element, features_gradient, gradient_below(layer, tile), count,
                                        true);
        plan.linear.apply_transposed(kernels_, tile.element, features_gradient,
                                     {scratch.contracted.data(), plan.contraction.out_size()}, count, false);
        stages.begin("contraction", [&] { return plan.contraction.work(count, true); });
        plan.contraction.reverse(kernels_, tile.element, scratch.messages.data(), scratch.contracted.data(),
                                 scratch.sums.data(), count, scratch.polynomial);
        Real* gradient = scratch.sums.data();
        if (plan.message_skip) {
            stages.begin("self connection of messages", [&] { return plan.message_skip->work(count); });
            plan.message_skip->apply_transposed(kernels_, tile.element, {gradient, message_size},
                                                {scratch.features.data(), message_size}, count, false);
            gradient = scratch.features.data();
        }
        if (plan.gate) stages.begin("gate", [&] { return plan.gate->work(count, true, layer > 0); });
        if (plan.gate) gradient = reverse_gate(layer, tile, gradient, scratch);
        stages.finish();
        reverse_scaled_messages(layer, tile, gradient, scratch);
    }

    // Reverse of compute_scaled_messages(): gives the gradients of sums and densities or, with moments, of edge
    // vectors.
    void reverse_scaled_messages(size_t layer, const AtomTile& tile, Real* gradient, Scratch<Real>& scratch) {
        const LayerPlan<Real>& plan = *plans_[layer];
        LayerState<Real>& state = states_[layer];
        const int count = tile.count(), size = plan.linear_layout.size;
        Stages stages = stages_of(scratch, Direction::reverse, layer);
        if (plan.moments)
            stages.begin("moments and messages", [&] {
                return moments_work(plan, true) * tiles_.edge_count(tile, edges_) + moment_maps_work(plan, tile);
            });
        else
            stages.begin("linear map of messages", [&] { return plan.message.work(count); });
        for (int i = 0; i < count; ++i) {
            const auto atom = static_cast<size_t>(atom_at(tile.begin + i));
            const Real divisor = state.divisors[atom];
            Real dot = 0;
            if (plan.columns.density >= 0) {
                // Without a gate, the product of messages and their gradient is the same before and after message_skip.
                const Real* maps = scaled_linear_maps(layer, tile, i, scratch);
                const Real* by_maps =
                    plan.gate ? gradient + i * size : scratch.sums.data() + i * plan.message_layout.size;
                for (int k = 0; k < size; ++k) dot += by_maps[k] * maps[k];
            }
            state.density_gradient[atom] = scratch.densities[static_cast<size_t>(i)] =
                -static_cast<Real>(plan.layer.interaction.divisor_density) * dot / divisor;
        }
        for (int i = 0; i < count; ++i) {
            const Real divisor = state.divisors[static_cast<size_t>(atom_at(tile.begin + i))];
            for (int k = 0; k < size; ++k) gradient[i * size + k] /= divisor;
        }
        if (plan.moments)
            reverse_moment_messages(input_of(layer), tiles_.elements_present(), {tiles_.atoms(tile), count}, gradient,
                                    scratch.densities.data(), scratch.moment, edges_);
        else
            plan.message.apply_transposed(kernels_, tile.element, {gradient, size},
                                          rows_of<Real>(tile, state.sums_gradient.data(), plan.sums_layout.size), count,
                                          false);
    }

    // Reverse of compute_gate(). `gradient` is that of the messages. The result is in scratch.messages.
    Real* reverse_gate(size_t layer, const AtomTile& tile, const Real* gradient, Scratch<Real>& scratch) {
        const LayerPlan<Real>& plan = *plans_[layer];
        LayerState<Real>& state = states_[layer];
        const int count = tile.count(), in_size = plan.linear_layout.size, out_size = plan.gate->out_layout.size;
        plan.gate->after.apply_transposed(kernels_, tile.element, {gradient, plan.message_layout.size},
                                          {scratch.gated.data(), out_size}, count, false);
        for (int i = 0; i < count; ++i)
            plan.gate->reverse(state.gate_inputs.data() + atom_at(tile.begin + i) * in_size,
                               scratch.gated.data() + i * out_size, scratch.messages.data() + i * in_size);
        if (layer > 0)
            plan.gate->residual.apply_transposed(
                kernels_, tile.element, {scratch.messages.data(), in_size},
                rows_of<Real>(tile, state.senders_gradient.data(), plan.sender_layout.size), count, false);
        return scratch.messages.data();
    }

    // What compute_scaled_messages() gave for the tile's i-th atom. The gradient of the density needs its product with
    // its gradient.
    const Real* scaled_linear_maps(size_t layer, const AtomTile& tile, int i, Scratch<Real>& scratch) {
        const LayerPlan<Real>& plan = *plans_[layer];
        const int64_t atom = atom_at(tile.begin + i);
        if (!plan.gate) return states_[layer].messages.data() + atom * plan.message_layout.size;
        Real* maps = scratch.gated.data();
        plan.gate->residual.apply(kernels_, tile.element, {sender_rows(layer, tile)[i], 0}, {maps, 0}, 1, false);
        const Real* input = states_[layer].gate_inputs.data() + atom * plan.linear_layout.size;
        for (int k = 0; k < plan.linear_layout.size; ++k) maps[k] = input[k] - maps[k];
        return maps;
    }

    // From the gradient of the summed messages to that of edge vectors and of the features below.
    void reverse_messages(size_t layer, const AtomTile& tile, Scratch<Real>& scratch) {
        const LayerPlan<Real>& plan = *plans_[layer];
        const LayerState<Real>& state = states_[layer];
        const LayerInput<Real> input = input_of(layer);
        const LayerGradients<Real> gradients = {state.sums_gradient.data(), state.density_gradient.data()};
        const int size = plan.sender_layout.size, down_size = plan.down ? plan.down->out_size() : 0;
        Stages stages = stages_of(scratch, Direction::reverse, layer);
        stages.begin("messages", [&] { return messages_work(plan, true) * tiles_.edge_count(tile, edges_); });
        for (int i = 0; i < tile.count() && layer > 0; ++i) {
            Real* senders_gradient = scratch.senders_gradient.data() + i * size;
            if (plan.gate)
                std::copy_n(state.senders_gradient.data() + atom_at(tile.begin + i) * size, size, senders_gradient);
            else
                std::fill_n(senders_gradient, size, Real(0));
        }
        if (layer > 0 && plan.down) std::fill_n(scratch.down_gradient.data(), tile.count() * down_size, Real(0));
        for (int number = 0; number < tile.group_count(); ++number) {
            const EdgeGroup group = tiles_.group(tile, number, edges_);
            if (layer == 0) {
                reverse_sent_messages<Real>(input, gradients, group, scratch.message, edges_, nullptr, nullptr);
                continue;
            }
            const int first = number * kAtomsPerGroup;
            Real* down_gradient = plan.down ? scratch.down_gradient.data() + first * down_size : nullptr;
            if (down_gradient)
                reverse_received_features(input, gradients, group, scratch.message, edges_, down_gradient);
            reverse_sent_messages(input, gradients, group, scratch.message, edges_,
                                  scratch.senders_gradient.data() + first * size, down_gradient);
        }
        if (layer == 0) return;
        stages.begin("what atoms send", [&] { return senders_work(layer, tile.count()); });
        plan.up.apply_transposed(kernels_, tile.element, {scratch.senders_gradient.data(), size},
                                 gradient_below(layer, tile), tile.count(), true);
        if (plan.down)
            plan.down->apply_transposed(kernels_, tile.element, {scratch.down_gradient.data(), down_size},
                                        gradient_below(layer, tile), tile.count(), true);
    }

    void add_repulsion_gradients(ThreadTeam& team) {
        const double scale = weights_->scale[static_cast<size_t>(head_)];
        for_each_tile(team, [&](const AtomTile& tile, Scratch<Real>& scratch) {
            Stages stages(scratch.stages, Direction::reverse);
            stages.begin("repulsion");
            for (int64_t place = tile.begin; place < tile.end; ++place)
                for (int64_t edge = edges_.edges->first[atom_at(place)]; edge < edges_.edges->first[atom_at(place) + 1];
                     ++edge) {
                    const double r = edges_.edges->distance[edge];
                    const double slope =
                        scale *
                        pair_repulsion(*weights_->repulsion, *weights_, tile.element, edges_.sender_element(edge), r)
                            .slope /
                        r;
                    for (int64_t k = 3 * edge; k < 3 * edge + 3; ++k)
                        edges_.vector_gradient[static_cast<size_t>(k)] += slope * edges_.edges->vector[k];
                }
        });
    }

    std::shared_ptr<const Weights> weights_;
    int head_;
    const KernelTable<Real>& kernels_;
    const KernelTable<double>& exact_kernels_;
    RowLayout first_layout_;
    std::vector<std::unique_ptr<LayerPlan<Real>>> plans_;
    std::vector<LayerState<Real>> states_;
    std::vector<ReadoutPlan<Real>> readouts_;
    std::vector<Scratch<Real>> scratch_;

    size_t owned_count_ = 0;  // all atoms except ghosts
    EdgeState edges_;
    AtomTiles tiles_;
    std::vector<double> embedding_;            // [element present][channel_count]
    std::vector<double> energy_of_embedding_;  // [element]
    Buffer<Real> first_features_;              // [element][first_layout_.size]
    std::vector<double> interaction_energy_;   // [atom]
};

}  // namespace

std::unique_ptr<Evaluator> make_cpu_evaluator(std::shared_ptr<const Weights> weights, const BackendOptions& options) {
    const std::string why_not = why_not_on_cpu(*weights);
    if (!why_not.empty()) fail(Status::unsupported, "the fast CPU backend cannot run this model: ", why_not);
    if (options.is_single()) return std::make_unique<CpuEvaluator<float>>(std::move(weights), options);
    return std::make_unique<CpuEvaluator<double>>(std::move(weights), options);
}

}  // namespace mlff::mace::cpu
