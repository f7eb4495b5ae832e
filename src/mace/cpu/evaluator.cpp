// SPDX-License-Identifier: MIT
#include "mace/cpu/evaluator.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "mace/cpu/edge_harmonics.h"
#include "mace/cpu/layer_plan.h"
#include "mace/reference/embedding.h"
#include "mace/reference/evaluator.h"
#include "mace/reference/radial.h"
#include "mace/reference/readout.h"
#include "mace/spherical_harmonics.h"

namespace mlff::mace::cpu {
namespace {

constexpr int kAtomsPerTile = 8;    // fixed: results do not depend on the number of threads
constexpr int kEdgesPerBatch = 32;  // weighed features of a batch stay in the first cache

// Atoms of one element, next to each other in `order`.
struct Tile {
    int64_t begin, end;
    int element;
};

template <class Real>
struct LayerState {
    Buffer<Real> senders;        // [atom][sender_layout.size]; [element][...] in the first layer
    Buffer<Real> messages;       // [atom][message_layout.size], what the contraction takes
    Buffer<Real> features;       // [atom][features_layout.size], what the layer gives
    Buffer<Real> divisors;       // [atom]
    Buffer<Real> gate_inputs;    // [atom][linear_layout.size], where there is a gate
    Buffer<Real> senders_gradient;  // [atom][sender_layout.size], through the gate's residual
    Buffer<Real> sums_gradient;  // [atom][sums_layout.size]
    Buffer<Real> features_gradient;
    Buffer<Real> density_gradient;  // [atom]
};

// Memory of one worker.
template <class Real>
struct Scratch {
    Buffer<Real> sums, messages, gated, products, contracted, features, shares, senders_gradient;
    std::vector<double> plain, plain_gradient;
    SplinePoint<Real> points[kEdgesPerBatch];
    const Real* senders[kEdgesPerBatch];
};

template <class Real>
class CpuEvaluator : public Evaluator {
public:
    CpuEvaluator(std::shared_ptr<const Weights> weights, int head)
        : weights_(std::move(weights)), head_(head), kernels_(choose_kernels<Real>()), reference_(weights_, head) {
        const RowLayout* below = &first_layout_;
        Irreps scalars;
        scalars.append(weights_->channel_count, Irrep{});
        first_layout_ = RowLayout(scalars);
        for (const Layer& layer : weights_->layers) {
            plans_.push_back(std::make_unique<LayerPlan<Real>>(*weights_, layer, *below));
            below = &plans_.back()->features_layout;
        }
        states_.resize(plans_.size());
    }

    void evaluate(const SystemView& system, const Edges& edges, const Outputs& outputs, ThreadTeam& team) override {
        if (has_too_short_edge(edges)) return reference_.evaluate(system, edges, outputs, team);
        edges_ = &edges;
        scratch_.resize(static_cast<size_t>(team.size()));
        sort_atoms(system);
        for (auto& plan : plans_) plan->prepare(elements_present_, team);
        compute_harmonics_of_edges(team);
        compute_first_features(system);
        for (size_t i = 0; i < plans_.size(); ++i) compute_layer(i, team);
        compute_energies(outputs, team);
        if (!outputs.forces && !outputs.virial && !outputs.atom_virials) return;
        start_gradients();
        for (size_t i = plans_.size(); i-- > 0;) reverse_layer(i, team);
        reverse_harmonics_of_edges(team);
        write_forces(outputs);
        write_virials(outputs);
    }

private:
    bool has_too_short_edge(const Edges& edges) const {
        const double lowest = lowest_distance(weights_->radial);
        for (int64_t edge = 0; edge < edges.edge_count; ++edge)
            if (!(edges.distance[edge] > lowest)) return true;
        return false;
    }

    void sort_atoms(const SystemView& system) {
        const auto atom_count = static_cast<size_t>(system.atom_count);
        elements_.resize(atom_count);
        std::vector<std::vector<int64_t>> by_element(static_cast<size_t>(weights_->element_count()));
        for (size_t atom = 0; atom < atom_count; ++atom) {
            elements_[atom] = weights_->element_of(system.atomic_numbers[atom]);
            by_element.at(static_cast<size_t>(elements_[atom])).push_back(static_cast<int64_t>(atom));
        }
        order_.clear();
        tiles_.clear();
        elements_present_.clear();
        for (size_t element = 0; element < by_element.size(); ++element) {
            if (by_element[element].empty()) continue;
            elements_present_.push_back(static_cast<int>(element));
            const auto begin = static_cast<int64_t>(order_.size());
            order_.insert(order_.end(), by_element[element].begin(), by_element[element].end());
            for (int64_t at = begin; at < static_cast<int64_t>(order_.size()); at += kAtomsPerTile)
                tiles_.push_back({at, std::min(at + kAtomsPerTile, static_cast<int64_t>(order_.size())), static_cast<int>(element)});
        }
    }

    template <class Work>
    void for_each_tile(ThreadTeam& team, const Work& work) {
        team.run(static_cast<int64_t>(tiles_.size()), [&](int64_t tile, int worker) { work(tiles_[static_cast<size_t>(tile)], scratch_[static_cast<size_t>(worker)]); });
    }
    int64_t atom_at(int64_t place) const { return order_[static_cast<size_t>(place)]; }

    // MACE takes harmonics of the vector from neighbour to centre, which is minus the vector of our edge.
    Vec3 direction(int64_t edge) const {
        const double* v = edges_->vector + 3 * edge;
        const double scale = -1 / edges_->distance[edge];
        return {scale * v[0], scale * v[1], scale * v[2]};
    }

    void compute_harmonics_of_edges(ThreadTeam& team) {
        harmonic_count_ = harmonic_count(weights_->max_degree);
        harmonics_.resize_discard(static_cast<size_t>(edges_->edge_count) * static_cast<size_t>(harmonic_count_));
        for_each_tile(team, [&](const Tile& tile, Scratch<Real>&) {
            for (int64_t place = tile.begin; place < tile.end; ++place)
                for (int64_t edge = edges_->first[atom_at(place)]; edge < edges_->first[atom_at(place) + 1]; ++edge)
                    compute_edge_harmonics(weights_->max_degree, direction(edge), harmonics_.data() + edge * harmonic_count_);
        });
    }

    void compute_first_features(const SystemView& system) {
        reference::compute_embedding(*weights_, system, elements_, embedding_);
        const auto width = static_cast<size_t>(weights_->channel_count);
        first_features_.resize_discard(static_cast<size_t>(weights_->element_count()) * static_cast<size_t>(first_layout_.size));
        std::fill(first_features_.begin(), first_features_.end(), Real(0));
        for (const Tile& tile : tiles_) {  // all atoms of an element are alike
            Real* rows = first_features_.data() + tile.element * first_layout_.size;
            const double* plain = embedding_.data() + static_cast<size_t>(atom_at(tile.begin)) * width;
            for (size_t u = 0; u < width; ++u) rows[u] = static_cast<Real>(plain[u]);
        }
        Buffer<Real>& senders = states_[0].senders;
        const int size = plans_[0]->sender_layout.size;
        senders.resize_discard(static_cast<size_t>(weights_->element_count()) * static_cast<size_t>(size));
        plans_[0]->up.apply(kernels_, 0, first_features_.data(), first_layout_.size, senders.data(), size, weights_->element_count(), false);
    }

    const Real* sender_features(size_t layer, int64_t atom) const {
        const int size = plans_[layer]->sender_layout.size;
        return states_[layer].senders.data() + (layer == 0 ? static_cast<int64_t>(elements_[static_cast<size_t>(atom)]) : atom) * size;
    }
    const Real* features_below(size_t layer, int64_t atom) const {
        if (layer == 0) return first_features_.data() + elements_[static_cast<size_t>(atom)] * first_layout_.size;
        return states_[layer - 1].features.data() + atom * plans_[layer - 1]->features_layout.size;
    }

    // ---- forward ----

    // sums[path][c][k] = sum over edges of R[k] shares[a][c] features[sender][a][k]; returns the density
    Real sum_messages(size_t layer, int64_t atom, Scratch<Real>& scratch, Real* sums) {
        const LayerPlan<Real>& plan = *plans_[layer];
        std::fill_n(sums, plan.sums_layout.size, Real(0));
        Real density = 0;
        for (int64_t begin = edges_->first[atom]; begin < edges_->first[atom + 1]; begin += kEdgesPerBatch) {
            const int count = static_cast<int>(std::min<int64_t>(kEdgesPerBatch, edges_->first[atom + 1] - begin));
            for (int e = 0; e < count; ++e) {
                const int64_t sender = edges_->sender[begin + e];
                const RadialTable<Real>& table = plan.table(elements_[static_cast<size_t>(atom)], elements_[static_cast<size_t>(sender)]);
                scratch.points[e] = table.at(edges_->distance[begin + e]);
                if (plan.columns.density >= 0) density += table.density(scratch.points[e]);
            }
            for (const PathPlan<Real>& path : plan.paths) {
                const int share_count = path.in_components * path.out_components;
                for (int e = 0; e < count; ++e) {
                    path.fill_shares(harmonics_.data() + (begin + e) * harmonic_count_, Real(1), scratch.shares.data() + e * share_count);
                    scratch.senders[e] = sender_features(layer, edges_->sender[begin + e]) + path.in_offset;
                }
                kernels_.weigh_features(scratch.points, path.column, scratch.senders, path.in_components, path.stride, count, scratch.products.data());
                kernels_.sum_products(scratch.shares.data(), scratch.products.data(), count * path.in_components, path.out_components, path.stride,
                                      sums + path.out_offset);
            }
        }
        return density;
    }

    void compute_layer(size_t layer, ThreadTeam& team) {
        const LayerPlan<Real>& plan = *plans_[layer];
        LayerState<Real>& state = states_[layer];
        const auto atom_count = elements_.size();
        const int message_size = plan.message_layout.size, features_size = plan.features_layout.size;
        const bool has_next = layer + 1 < plans_.size();
        state.messages.resize_discard(atom_count * static_cast<size_t>(message_size));
        state.features.resize_discard(atom_count * static_cast<size_t>(features_size));
        state.divisors.resize_discard(atom_count);
        if (plan.gate) state.gate_inputs.resize_discard(atom_count * static_cast<size_t>(plan.linear_layout.size));
        if (has_next) states_[layer + 1].senders.resize_discard(atom_count * static_cast<size_t>(plans_[layer + 1]->sender_layout.size));
        for (Scratch<Real>& scratch : scratch_) reserve(plan, scratch);
        for_each_tile(team, [&](const Tile& tile, Scratch<Real>& scratch) {
            const int count = static_cast<int>(tile.end - tile.begin);
            const Interaction& interaction = plan.layer.interaction;
            for (int i = 0; i < count; ++i) {
                const int64_t atom = atom_at(tile.begin + i);
                const Real density = sum_messages(layer, atom, scratch, scratch.sums.data() + i * plan.sums_layout.size);
                state.divisors[static_cast<size_t>(atom)] = static_cast<Real>(interaction.divisor_constant) + static_cast<Real>(interaction.divisor_density) * density;
            }
            const int linear_size = plan.linear_layout.size;
            plan.message.apply(kernels_, tile.element, scratch.sums.data(), plan.sums_layout.size, scratch.messages.data(), linear_size, count, false);
            for (int i = 0; i < count; ++i) {
                const Real factor = 1 / state.divisors[static_cast<size_t>(atom_at(tile.begin + i))];
                for (int k = 0; k < linear_size; ++k) scratch.messages[static_cast<size_t>(i * linear_size + k)] *= factor;
            }
            const Real* messages = scratch.messages.data();
            if (plan.gate) {
                compute_gate(layer, tile, scratch);
                messages = scratch.sums.data();
            }
            if (plan.message_skip) {
                plan.message_skip->apply(kernels_, tile.element, messages, message_size, scratch.gated.data(), message_size, count, false);
                messages = scratch.gated.data();
            }
            plan.contraction.apply(kernels_, tile.element, messages, scratch.contracted.data(), count);
            plan.linear.apply(kernels_, tile.element, scratch.contracted.data(), plan.contraction.out_size(), scratch.features.data(), features_size, count, false);
            for (int i = 0; i < count; ++i) {
                const int64_t atom = atom_at(tile.begin + i);
                Real* features = scratch.features.data() + i * features_size;
                if (plan.skip) plan.skip->apply(kernels_, tile.element, features_below(layer, atom), 0, features, 0, 1, true);
                std::copy_n(messages + i * message_size, message_size, state.messages.data() + atom * message_size);
                std::copy_n(features, features_size, state.features.data() + atom * features_size);
                if (has_next) {
                    const int size = plans_[layer + 1]->sender_layout.size;
                    plans_[layer + 1]->up.apply(kernels_, tile.element, features, 0, states_[layer + 1].senders.data() + atom * size, 0, 1, false);
                }
            }
        });
    }

    // From linear maps of the sums in scratch.messages to messages in scratch.sums.
    void compute_gate(size_t layer, const Tile& tile, Scratch<Real>& scratch) {
        const LayerPlan<Real>& plan = *plans_[layer];
        const int count = static_cast<int>(tile.end - tile.begin), in_size = plan.linear_layout.size, out_size = plan.gate->out_layout.size;
        for (int i = 0; i < count; ++i) {
            const int64_t atom = atom_at(tile.begin + i);
            Real* input = scratch.messages.data() + i * in_size;
            plan.gate->residual.apply(kernels_, tile.element, sender_features(layer, atom), 0, input, 0, 1, true);
            std::copy_n(input, in_size, states_[layer].gate_inputs.data() + atom * in_size);
            plan.gate->apply(input, scratch.gated.data() + i * out_size);
        }
        plan.gate->after.apply(kernels_, tile.element, scratch.gated.data(), out_size, scratch.sums.data(), plan.message_layout.size, count, false);
    }

    // From the gradient of the messages in `gradient` to that of the scaled linear maps, which replaces it in scratch.messages.
    const Real* reverse_gate(size_t layer, const Tile& tile, const Real* gradient, Scratch<Real>& scratch) {
        const LayerPlan<Real>& plan = *plans_[layer];
        LayerState<Real>& state = states_[layer];
        const int count = static_cast<int>(tile.end - tile.begin), in_size = plan.linear_layout.size, out_size = plan.gate->out_layout.size;
        plan.gate->after.apply_transposed(kernels_, tile.element, gradient, plan.message_layout.size, scratch.gated.data(), out_size, count, false);
        for (int i = 0; i < count; ++i) {
            const int64_t atom = atom_at(tile.begin + i);
            const Real* input = state.gate_inputs.data() + atom * in_size;
            Real* input_gradient = scratch.messages.data() + i * in_size;
            plan.gate->reverse(input, scratch.gated.data() + i * out_size, input_gradient);
            if (layer > 0)
                plan.gate->residual.apply_transposed(kernels_, tile.element, input_gradient, 0, state.senders_gradient.data() + atom * plan.sender_layout.size, 0, 1, false);
        }
        return scratch.messages.data();
    }

    // The scaled linear maps of the sums, of which the density gradient needs the product with their gradient.
    const Real* scaled_linear_maps(size_t layer, int element, int64_t atom, Scratch<Real>& scratch) {
        const LayerPlan<Real>& plan = *plans_[layer];
        if (!plan.gate) return states_[layer].messages.data() + atom * plan.message_layout.size;
        Real* maps = scratch.gated.data();
        plan.gate->residual.apply(kernels_, element, sender_features(layer, atom), 0, maps, 0, 1, false);
        const Real* input = states_[layer].gate_inputs.data() + atom * plan.linear_layout.size;
        for (int k = 0; k < plan.linear_layout.size; ++k) maps[k] = input[k] - maps[k];
        return maps;
    }

    void reserve(const LayerPlan<Real>& plan, Scratch<Real>& scratch) {
        const int gate_size = plan.gate ? std::max(plan.linear_layout.size, plan.gate->out_layout.size) : 0;
        const int widest = std::max({plan.sums_layout.size, plan.message_layout.size, plan.contraction.out_size(), plan.features_layout.size, gate_size});
        int stride = kRowPadding;
        for (const auto& path : plan.paths) stride = std::max(stride, path.stride);
        for (Buffer<Real>* buffer : {&scratch.sums, &scratch.messages, &scratch.gated, &scratch.contracted, &scratch.features})
            buffer->resize_discard(static_cast<size_t>(kAtomsPerTile) * static_cast<size_t>(widest));
        scratch.products.resize_discard(static_cast<size_t>(kEdgesPerBatch * plan.most_components * stride));
        scratch.shares.resize_discard(static_cast<size_t>(kEdgesPerBatch * plan.most_shares));
        scratch.senders_gradient.resize_discard(static_cast<size_t>(plan.sender_layout.size));
    }

    // Readouts are small: they run in double precision, as in the reference.
    void compute_energies(const Outputs& outputs, ThreadTeam& team) {
        interaction_energy_.assign(elements_.size(), 0.0);
        for_each_tile(team, [&](const Tile& tile, Scratch<Real>& scratch) {
            for (int64_t place = tile.begin; place < tile.end; ++place) {
                const int64_t atom = atom_at(place);
                double energy = 0;
                if (weights_->repulsion)
                    for (int64_t edge = edges_->first[atom]; edge < edges_->first[atom + 1]; ++edge)
                        energy += reference::pair_repulsion(*weights_->repulsion, *weights_, elements_[static_cast<size_t>(edges_->sender[edge])], tile.element,
                                                            edges_->distance[edge]).value;
                for (const Readout& readout : weights_->readouts) energy += reference::compute_readout(readout, head_, plain_features(readout, atom, scratch));
                interaction_energy_[static_cast<size_t>(atom)] = energy;
            }
        });
        reference::write_energies(*weights_, head_, elements_, embedding_, interaction_energy_, outputs);
    }

    const double* plain_features(const Readout& readout, int64_t atom, Scratch<Real>& scratch) const {
        const auto layer = static_cast<size_t>(readout.layer);
        const Irreps& irreps = plans_[layer]->layer.linear.out;
        scratch.plain.resize(static_cast<size_t>(irreps.dimension()));
        from_rows(irreps, plans_[layer]->features_layout, states_[layer].features.data() + atom * plans_[layer]->features_layout.size, scratch.plain.data());
        return scratch.plain.data();
    }

    // ---- reverse ----

    void start_gradients() {
        const auto edge_count = static_cast<size_t>(edges_->edge_count);
        harmonics_gradient_.resize_discard(edge_count * static_cast<size_t>(harmonic_count_));
        std::fill(harmonics_gradient_.begin(), harmonics_gradient_.end(), Real(0));
        distance_gradient_.assign(edge_count, 0.0);
        for (size_t i = 0; i < plans_.size(); ++i) {
            Buffer<Real>& gradient = states_[i].features_gradient;
            gradient.resize_discard(elements_.size() * static_cast<size_t>(plans_[i]->features_layout.size));
            std::fill(gradient.begin(), gradient.end(), Real(0));
        }
    }

    void add_readout_gradient(size_t layer, int64_t atom, Scratch<Real>& scratch) {
        const double scale = weights_->scale[static_cast<size_t>(head_)];
        const Irreps& irreps = plans_[layer]->layer.linear.out;
        const RowLayout& layout = plans_[layer]->features_layout;
        for (const Readout& readout : weights_->readouts) {
            if (static_cast<size_t>(readout.layer) != layer) continue;
            scratch.plain_gradient.assign(static_cast<size_t>(irreps.dimension()), 0.0);
            reference::reverse_readout(readout, head_, plain_features(readout, atom, scratch), scale, scratch.plain_gradient.data());
            Real* rows = states_[layer].features_gradient.data() + atom * layout.size;
            for (size_t b = 0; b < layout.blocks.size(); ++b) {
                const RowBlock& block = layout.blocks[b];
                const double* from = scratch.plain_gradient.data() + irreps[static_cast<int>(b)].offset;
                for (int m = 0; m < block.components; ++m)
                    for (int u = 0; u < block.copies; ++u) rows[block.offset + m * block.stride + u] += static_cast<Real>(from[u * block.components + m]);
            }
        }
    }

    void reverse_layer(size_t layer, ThreadTeam& team) {
        const LayerPlan<Real>& plan = *plans_[layer];
        states_[layer].sums_gradient.resize_discard(elements_.size() * static_cast<size_t>(plan.sums_layout.size));
        states_[layer].density_gradient.resize_discard(elements_.size());
        if (plan.gate) states_[layer].senders_gradient.resize_discard(elements_.size() * static_cast<size_t>(plan.sender_layout.size));
        for (Scratch<Real>& scratch : scratch_) reserve(plan, scratch);
        for_each_tile(team, [&](const Tile& tile, Scratch<Real>& scratch) { reverse_atoms(layer, tile, scratch); });
        for_each_tile(team, [&](const Tile& tile, Scratch<Real>& scratch) {
            for (int64_t place = tile.begin; place < tile.end; ++place) reverse_sent_messages(layer, atom_at(place), scratch);
        });
    }

    // From the gradient of a layer's features to that of its summed messages, and of the features below through the skip.
    void reverse_atoms(size_t layer, const Tile& tile, Scratch<Real>& scratch) {
        const LayerPlan<Real>& plan = *plans_[layer];
        LayerState<Real>& state = states_[layer];
        const Interaction& interaction = plan.layer.interaction;
        const int count = static_cast<int>(tile.end - tile.begin), message_size = plan.message_layout.size, features_size = plan.features_layout.size;
        for (int i = 0; i < count; ++i) {
            const int64_t atom = atom_at(tile.begin + i);
            add_readout_gradient(layer, atom, scratch);
            const Real* gradient = state.features_gradient.data() + atom * features_size;
            std::copy_n(gradient, features_size, scratch.features.data() + i * features_size);
            std::copy_n(state.messages.data() + atom * message_size, message_size, scratch.messages.data() + i * message_size);
            if (plan.skip && layer > 0)
                plan.skip->apply_transposed(kernels_, tile.element, gradient, 0, states_[layer - 1].features_gradient.data() + atom * plans_[layer - 1]->features_layout.size, 0, 1, true);
        }
        plan.linear.apply_transposed(kernels_, tile.element, scratch.features.data(), features_size, scratch.contracted.data(), plan.contraction.out_size(), count, false);
        plan.contraction.reverse(kernels_, tile.element, scratch.messages.data(), scratch.contracted.data(), scratch.sums.data(), count);
        const Real* gradient = scratch.sums.data();
        if (plan.message_skip) {
            plan.message_skip->apply_transposed(kernels_, tile.element, gradient, message_size, scratch.features.data(), message_size, count, false);
            gradient = scratch.features.data();
        }
        if (plan.gate) gradient = reverse_gate(layer, tile, gradient, scratch);
        const int linear_size = plan.linear_layout.size;
        for (int i = 0; i < count; ++i) {
            const int64_t atom = atom_at(tile.begin + i);
            Real dot = 0;
            if (plan.columns.density >= 0) {
                // Without a gate, messages and their gradient before and after the skip have the same product.
                const Real* maps = scaled_linear_maps(layer, tile.element, atom, scratch);
                const Real* by_maps = plan.gate ? gradient + i * linear_size : scratch.sums.data() + i * message_size;
                for (int k = 0; k < linear_size; ++k) dot += by_maps[k] * maps[k];
            }
            const Real divisor = state.divisors[static_cast<size_t>(atom)];
            state.density_gradient[static_cast<size_t>(atom)] = -static_cast<Real>(interaction.divisor_density) * dot / divisor;
            Real* target = state.sums_gradient.data() + atom * plan.sums_layout.size;
            plan.message.apply_transposed(kernels_, tile.element, gradient + i * linear_size, 0, target, 0, 1, false);
            for (int k = 0; k < plan.sums_layout.size; ++k) target[k] /= divisor;
        }
    }

    // The messages that an atom sends are those of its edges reversed: same length, harmonics of the other sign.
    void reverse_sent_messages(size_t layer, int64_t atom, Scratch<Real>& scratch) {
        const LayerPlan<Real>& plan = *plans_[layer];
        const LayerState<Real>& state = states_[layer];
        const int element = elements_[static_cast<size_t>(atom)];
        const Real* features = sender_features(layer, atom);
        Real* gradient = layer > 0 ? scratch.senders_gradient.data() : nullptr;
        if (gradient && plan.gate)
            std::copy_n(state.senders_gradient.data() + atom * plan.sender_layout.size, plan.sender_layout.size, gradient);
        else if (gradient)
            std::fill_n(gradient, plan.sender_layout.size, Real(0));
        Real* shares = scratch.shares.data();
        Real* shares_gradient = scratch.products.data();
        for (int64_t edge = edges_->first[atom]; edge < edges_->first[atom + 1]; ++edge) {
            const int64_t receiver = edges_->sender[edge];
            const RadialTable<Real>& table = plan.table(elements_[static_cast<size_t>(receiver)], element);
            const SplinePoint<Real> point = table.at(edges_->distance[edge]);
            const Real* harmonics = harmonics_.data() + edge * harmonic_count_;
            const Real* sums_gradient = state.sums_gradient.data() + receiver * plan.sums_layout.size;
            double slope = 0;
            for (const PathPlan<Real>& path : plan.paths) {
                path.fill_shares(harmonics, path.reversal, shares);
                slope += static_cast<double>(kernels_.reverse_edge(point, path.column, features + path.in_offset, gradient ? gradient + path.in_offset : nullptr,
                                                                   sums_gradient + path.out_offset, shares, shares_gradient, path.in_components, path.out_components, path.stride));
                path.reverse_shares(shares_gradient, path.reversal, harmonics_gradient_.data() + edge * harmonic_count_);
            }
            if (plan.columns.density >= 0) slope += static_cast<double>(state.density_gradient[static_cast<size_t>(receiver)] * table.density_slope(point));
            distance_gradient_[static_cast<size_t>(edge)] += slope;
        }
        if (gradient)
            plan.up.apply_transposed(kernels_, element, gradient, 0, states_[layer - 1].features_gradient.data() + atom * plans_[layer - 1]->features_layout.size, 0, 1, true);
    }

    // vector_gradient[edge] = dE/dvector of the messages that go along the edge the other way, as functions of this vector.
    void reverse_harmonics_of_edges(ThreadTeam& team) {
        vector_gradient_.resize(static_cast<size_t>(edges_->edge_count));
        const double scale = weights_->scale[static_cast<size_t>(head_)];
        for_each_tile(team, [&](const Tile& tile, Scratch<Real>&) {
            for (int64_t place = tile.begin; place < tile.end; ++place)
                for (int64_t edge = edges_->first[atom_at(place)]; edge < edges_->first[atom_at(place) + 1]; ++edge) {
                    const Vec3 n = direction(edge);
                    const double r = edges_->distance[edge];
                    double slope = distance_gradient_[static_cast<size_t>(edge)];
                    if (weights_->repulsion)
                        slope += scale * reference::pair_repulsion(*weights_->repulsion, *weights_, tile.element, elements_[static_cast<size_t>(edges_->sender[edge])], r).slope;
                    const Vec3 turn = reverse_edge_harmonics(weights_->max_degree, n, r, harmonics_gradient_.data() + edge * harmonic_count_);
                    for (size_t k = 0; k < 3; ++k) vector_gradient_[static_cast<size_t>(edge)][k] = -(slope * n[k] + turn[k]);
                }
        });
    }

    void write_forces(const Outputs& outputs) const {
        if (!outputs.forces) return;
        std::fill_n(outputs.forces, elements_.size() * 3, 0.0);
        for_edges([&](int64_t atom, int64_t neighbor, const double*, const Vec3& gradient) {
            for (int k = 0; k < 3; ++k) {
                outputs.forces[3 * atom + k] += gradient[static_cast<size_t>(k)];
                outputs.forces[3 * neighbor + k] -= gradient[static_cast<size_t>(k)];
            }
        });
    }

    void write_virials(const Outputs& outputs) const {
        if (!outputs.virial && !outputs.atom_virials) return;
        if (outputs.virial) std::fill_n(outputs.virial, 9, 0.0);
        if (outputs.atom_virials) std::fill_n(outputs.atom_virials, elements_.size() * 9, 0.0);
        for_edges([&](int64_t atom, int64_t neighbor, const double* vector, const Vec3& gradient) {
            for (int i = 0; i < 3; ++i)
                for (int j = 0; j < 3; ++j) {
                    const double part = -0.5 * (vector[i] * gradient[static_cast<size_t>(j)] + vector[j] * gradient[static_cast<size_t>(i)]);
                    if (outputs.virial) outputs.virial[3 * i + j] += part;
                    if (!outputs.atom_virials) continue;
                    outputs.atom_virials[9 * atom + 3 * i + j] += 0.5 * part;
                    outputs.atom_virials[9 * neighbor + 3 * i + j] += 0.5 * part;
                }
        });
    }

    template <class Visit>
    void for_edges(const Visit& visit) const {
        for (int64_t atom = 0; atom < edges_->atom_count; ++atom)
            for (int64_t edge = edges_->first[atom]; edge < edges_->first[atom + 1]; ++edge)
                visit(atom, static_cast<int64_t>(edges_->sender[edge]), edges_->vector + 3 * edge, vector_gradient_[static_cast<size_t>(edge)]);
    }

    std::shared_ptr<const Weights> weights_;
    int head_;
    const KernelTable<Real>& kernels_;
    reference::ReferenceEvaluator reference_;  // for atoms so close that the tables do not reach
    RowLayout first_layout_;
    std::vector<std::unique_ptr<LayerPlan<Real>>> plans_;
    std::vector<LayerState<Real>> states_;
    std::vector<Scratch<Real>> scratch_;

    const Edges* edges_ = nullptr;
    std::vector<int> elements_;         // [atom]
    std::vector<int> elements_present_;
    std::vector<int64_t> order_;        // atoms sorted by element
    std::vector<Tile> tiles_;
    int harmonic_count_ = 0;
    Buffer<Real> harmonics_, harmonics_gradient_;  // [edge][harmonic_count]
    std::vector<double> distance_gradient_;        // [edge]
    std::vector<Vec3> vector_gradient_;            // [edge]
    std::vector<double> embedding_;                // [atom][channel_count]
    Buffer<Real> first_features_;                  // [element][first_layout_.size]
    std::vector<double> interaction_energy_;       // [atom]
};

}  // namespace

std::unique_ptr<Evaluator> make_cpu_evaluator(std::shared_ptr<const Weights> weights, int head, bool is_single) {
    const std::string why_not = why_not_on_cpu(*weights);
    if (!why_not.empty()) fail(Status::unsupported, "the fast CPU backend cannot run this model: ", why_not);
    if (is_single) return std::make_unique<CpuEvaluator<float>>(std::move(weights), head);
    return std::make_unique<CpuEvaluator<double>>(std::move(weights), head);
}

}  // namespace mlff::mace::cpu
