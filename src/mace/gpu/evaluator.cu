// SPDX-License-Identifier: MIT
#include "mace/gpu/evaluator.h"

#include <algorithm>
#include <bitset>
#include <span>
#include <unordered_set>
#include <utility>

#include "core/elements.h"
#include "core/error.h"
#include "equivariant/gpu/edges.h"
#include "equivariant/gpu/message_scratch.h"
#include "equivariant/gpu/readout.h"
#include "equivariant/gpu/rows.h"
#include "equivariant/spherical_harmonics.h"
#include "gpu/engine/step_evaluator.h"
#include "gpu/runtime/cuda_check.h"
#include "gpu/runtime/device_buffer.h"
#include "gpu/runtime/gpu.h"
#include "mace/gpu/device_layer.h"
#include "mace/gpu/division.h"
#include "mace/gpu/first_features.h"
#include "mace/gpu/readout_matrices.h"
#include "mace/gpu/stage_work.h"
#include "mace/plan/layer_plan.h"

namespace mlff::mace::gpu {
namespace {

using mlff::gpu::check;
using mlff::gpu::DeviceBuffer;

using ElementSet = std::bitset<kMaxAtomicNumber>;

template <class Real>
class MaceStep : public StepModel {
public:
    MaceStep(std::shared_ptr<const Weights> weights, const BackendOptions& options, int64_t message_scratch_bytes,
             cudaStream_t stream)
        : weights_(std::move(weights)),
          head_(options.head),
          message_scratch_(message_scratch_bytes, options.gpu_memory_limit_bytes),
          stream_(stream),
          facts_{weights_->cutoff, weights_->atomic_numbers, weights_->descriptor_count()} {
        const int element_count = weights_->element_count();
        int most_shared = 0;
        check(
            cudaDeviceGetAttribute(&most_shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, gpu_ordinal(options.device)),
            "asking for the device");
        Irreps scalars;
        scalars.append(weights_->channel_count, Irrep{});
        first_layout_ = plan::RowLayout(scalars);
        const plan::RowLayout* below = &first_layout_;
        bool has_fused = false;
        for (const Layer& layer : weights_->layers) {
            const bool can_fuse =
                kCanFuse<Real> && FusedMessages::can_run(layer.interaction, static_cast<size_t>(most_shared));
            const MessageOptions messages = {can_fuse && options.optimizations.fused_messages,
                                             options.precision == Precision::fast};
            plans_.push_back(std::make_unique<plan::LayerPlan<Real>>(
                *weights_, layer, *below, plan::LayerOptions{.hidden_radial = messages.are_fused}));
            layers_.push_back(std::make_unique<DeviceLayer<Real>>(
                *plans_.back(), *below, harmonic_count(weights_->max_degree), element_count, messages, stream_));
            if (layers_.back()->fused) message_scratch_.add_layer(*layers_.back()->fused);
            below = &plans_.back()->features_layout;
            has_fused = has_fused || (can_fuse && !plans_.back()->moments);
        }
        if (!options.optimizations.fused_messages && !has_fused)
            fail(Status::unsupported, "fused=off: this model has no fused messages in precision ",
                 precision_name(options.precision));
        for (const Readout& readout : weights_->readouts) {
            const plan::LayerPlan<Real>& plan = *plans_[static_cast<size_t>(readout.layer)];
            readouts_.push_back(std::make_unique<DeviceReadout<Real>>(matrices_of(readout, options.head),
                                                                      plan.features_layout, stream_));
        }
        if (readouts_.empty()) fail(Status::internal, "a model without readouts");  // they finish the energies
        if (weights_->repulsion) upload_repulsion();
    }

    const StepModelFacts& facts() const override { return facts_; }

    bool prepare(const SystemView& system, const std::vector<int>& elements_present, ThreadTeam& team,
                 cudaStream_t stream) override {
        stream_ = stream;
        elements_present_ = elements_present;
        const bool has_moved = prepare_elements(team);
        first_.update(*weights_, head_, system, first_layout_, plans_.front()->sender_layout, stream_);
        return has_moved;
    }

    // First features are stored by element, so all systems of a batch need the same charge and spin.
    bool can_batch(const SystemView& first, const SystemView& next) const override {
        return !weights_->joint_embedding ||
               (first.total_charge == next.total_charge && first.spin_multiplicity == next.spin_multiplicity);
    }

    void list_buffers(BufferList& list, const StepSize& size) override {
        constexpr const char *kAtoms = "the features of the atoms", *kEdges = "the edges";
        const int64_t atoms = size.atoms, edges = size.edges, harmonics = harmonic_count(weights_->max_degree);
        const bool has_gradients = size.wanted.gradients();
        list.add(harmonics_, edges * harmonics, kEdges);
        message_scratch_.list(list, atoms, edges, has_gradients);
        if (has_gradients) {
            list.add(harmonics_gradient_, edges * harmonics, kEdges);
            list.add(distance_gradient_, edges, kEdges);
            list.add(vector_gradient_, 3 * edges, kEdges);
            list.add(densities_gradient_, atoms, kAtoms);
        }
        for (size_t i = 0; i < layers_.size(); ++i) {
            DeviceLayer<Real>& layer = *layers_[i];
            const plan::LayerPlan<Real>& plan = layer.plan;
            const int64_t linear_size = plan.linear_layout.size, message_size = plan.message_layout.size,
                          sender_size = plan.sender_layout.size;
            if (layer.edge_network) layer.edge_network->list_buffers(list, atoms, edges, has_gradients);
            list.add(layer.densities, atoms, kAtoms);
            list.add(layer.divisors, atoms, kAtoms);
            list.add(layer.scaled, atoms * linear_size, kAtoms);
            if (plan.moments)
                layer.list_moments(list, moments_, atoms, elements_present_);
            else
                list.add(sums_, atoms * plan.sums_layout.size, kAtoms);
            if (layer.gate) {
                list.add(layer.gate_inputs, atoms * linear_size, kAtoms);
                list.add(work_, atoms * plan.gate->out_layout.size, kAtoms);
            }
            if (layer.gate || layer.message_skip) list.add(layer.contracted_in, atoms * message_size, kAtoms);
            list.add(contracted_, atoms * plan.contraction.out_size(), kAtoms);
            list.add(layer.features, atoms * plan.features_layout.size, kAtoms);
            if (i > 0) list.add(layer.senders, atoms * sender_size, kAtoms);
            if (!has_gradients) continue;
            list.add(layer.features_gradient, atoms * plan.features_layout.size, kAtoms);
            list.add(work_, atoms * std::max(message_size, linear_size), kAtoms);
            if (layer.message_skip) list.add(more_work_, atoms * message_size, kAtoms);
            if (layer.gate) {
                list.add(gated_, atoms * plan.gate->out_layout.size, kAtoms);
                list.add(more_work_, atoms * linear_size, kAtoms);
            }
            if (i > 0 || layer.gate) list.add(senders_gradient_, atoms * sender_size, kAtoms);
        }
    }

    int64_t most_ghost_row_bytes() const override {
        int64_t most = 1;
        for (const auto& layer : layers_) {
            most = std::max({most, int64_t{layer->plan.sender_layout.size}, int64_t{layer->plan.linear_layout.size}});
            if (layer->edge_network) most = std::max(most, layer->edge_network->ends_size());
        }
        return most * static_cast<int64_t>(sizeof(Real));
    }

    void enqueue(const Step& step, StepResults& results, cudaStream_t stream) override {
        const Wanted& wanted = step.wanted;
        stream_ = stream;
        step_ = step;
        tiles_ = step.tiles;
        edges_ = {step.edges.atom_count,
                  step.edges.first,
                  step.edges.sender,
                  step.edges.distance,
                  step.edges.elements,
                  harmonics_.data(),
                  harmonic_count(weights_->max_degree)};
        edges_with_ghosts_ = edges_;
        edges_with_ghosts_.atom_count += step.ghost_count;
        geometry_ = {step.edges.vector, step.edges.reverse, weights_->max_degree};
        begin_stage("harmonics", Direction::forward, stream_, [&] { return harmonics_work<Real>(*weights_); });
        // A ghost's edge that is too short is also one of its owner, who refuses it too.
        compute_harmonics(edges_with_ghosts_, geometry_,
                          {plan::lowest_distance(weights_->radial), results.short_edges.data()}, harmonics_.data(),
                          stream_);
        for (size_t i = 0; i < layers_.size(); ++i) compute_layer(i);
        begin_stage("readouts", Direction::forward, stream_,
                    [&] { return readouts_work<Real>(*weights_, wanted.gradients()); });
        compute_energies(results.energies.data(), wanted.gradients());
        if (wanted.gradients()) {
            for (size_t i = layers_.size(); i-- > 0;) reverse_layer(i);
            begin_stage("harmonics and forces", Direction::reverse, stream_,
                        [&] { return forces_work<Real>(*weights_, wanted.virials()); });
            compute_forces(results);
        }
        if (wanted.descriptors) compute_descriptors(results.descriptors.data());
    }
    EnergyView energy_view(const Step& step) const override {
        const auto head = static_cast<size_t>(head_);
        return {step.edges.elements, first_.energies(), weights_->scale[head], weights_->shift[head]};
    }

    [[noreturn]] void refuse_short_edges() const override {
        if (plan::lowest_distance(weights_->radial) == 0) fail(Status::system, "two atoms are at the same place");
        fail(Status::system, "two atoms are not more than ", plan::lowest_distance(weights_->radial),
             " angstrom apart, where the GPU's tables of radial functions end; --device cpu can evaluate this");
    }

private:
    MessageScratch::OfLayer message_scratch(const DeviceLayer<Real>& layer) const {
        return message_scratch_.of(*layer.fused, atom_count(), step_.edges.capacity);
    }

    // Whether the gradients of ghosts' features go back to the domains that own the atoms. Otherwise each domain needs
    // gradients of the messages of its ghosts, which are larger, and computes their edges too. Layers with a gate or a
    // density do that. The answer must be the same in all domains, also in one without atoms.
    bool returns_gradients(const DeviceLayer<Real>& layer) const {
        return layer.fused.has_value() && !layer.gate && layer.plan.columns.density < 0 &&
               layer.plan.sender_layout.size % 4 == 0 && step_.halo && step_.halo->can_add_back();
    }
    // Whether what the forward pass of the layer has prepared for the edges is still there in the reverse, which may
    // need those of ghosts too.
    bool keeps_prepared_edges(const DeviceLayer<Real>& layer) const {
        const MessageScratch::OfLayer scratch = message_scratch(layer);
        return step_.wanted.gradients() && scratch.is_own && (step_.ghost_count == 0 || returns_gradients(layer)) &&
               layer.fused->fits_at_once(scratch);
    }

    // Of "messages" or, in a layer with moments, of "moments and messages".
    StepWork messages_work(const DeviceLayer<Real>& layer, bool is_reverse) const {
        if (layer.moments) return moments_work(layer.plan, std::span<const int>(elements_present_), is_reverse);
        if (layer.edge_network) return network_messages_work(layer.plan, is_reverse);
        if (layer.messages) return table_messages_work(layer.plan, is_reverse);
        return fused_messages_work(layer.plan, {keeps_prepared_edges(layer), layer.fused->partial_count()}, is_reverse);
    }
    // For a stage that continues after an exchange of rows. Work on ghosts is not counted.
    static constexpr StepWork kCountedBefore{};

    using LinearCall = typename DeviceLinear<Real>::Call;
    using LinearSum = typename DeviceLinear<Real>::Sum;

    template <class T>
    static void resize(DeviceBuffer<T>& buffer, int64_t rows, int64_t size) {
        use_listed(buffer, rows * size, "the features of the atoms");
    }

    void upload_repulsion() {
        const PairRepulsion& plain = *weights_->repulsion;
        const std::vector<double> numbers(weights_->atomic_numbers.begin(), weights_->atomic_numbers.end());
        radii_.upload(plain.radii.data(), static_cast<int64_t>(plain.radii.size()), "the model", stream_);
        atomic_numbers_.upload(numbers.data(), static_cast<int64_t>(numbers.size()), "the model", stream_);
        repulsion_.is_there = true;
        std::copy_n(plain.coefficients.begin(), 4, repulsion_.coefficients);
        repulsion_.prefactor = plain.prefactor;
        repulsion_.exponent = plain.exponent;
        repulsion_.cutoff_exponent = plain.cutoff_exponent;
        repulsion_.radii = radii_.data();
        repulsion_.atomic_numbers = atomic_numbers_.data();
        repulsion_.scale = weights_->scale[static_cast<size_t>(head_)];
    }

    // Makes tables for the pairs of elements present. Returns whether that took new memory.
    bool prepare_elements(ThreadTeam& team) {
        ElementSet present;
        for (int z : elements_present_) present.set(static_cast<size_t>(z));
        if (prepared_.contains(present)) return false;
        auto prepared = std::exchange(prepared_, {});  // if it fails, all are prepared again: shared buffers may differ
        for (size_t i = 0; i < layers_.size(); ++i) {
            plans_[i]->prepare(elements_present_, team);
            layers_[i]->prepare(elements_present_, team, stream_);
        }
        prepared.insert(present);
        prepared_ = std::move(prepared);
        return true;
    }

    int64_t atom_count() const { return edges_.atom_count; }

    template <class T>
    static RowsView<const T> rows(const DeviceBuffer<T>& buffer, int size) {
        return {buffer.data(), size, nullptr};
    }
    template <class T>
    static RowsView<T> rows_to(DeviceBuffer<T>& buffer, int size) {
        return {buffer.data(), size, nullptr};
    }
    RowsView<const Real> sender_rows(size_t layer) const {
        const int size = plans_[layer]->sender_layout.size;
        if (layer == 0) return {first_.senders().data(), size, edges_.elements};
        return rows(layers_[layer]->senders, size);
    }
    RowsView<const Real> features_below(size_t layer) const {
        if (layer == 0) return {first_.features().data(), first_layout_.size, edges_.elements};
        return rows(layers_[layer - 1]->features, plans_[layer - 1]->features_layout.size);
    }
    RowsView<Real> gradient_below(size_t layer) {
        return rows_to(layers_[layer - 1]->features_gradient, plans_[layer - 1]->features_layout.size);
    }

    // ---- forward ----

    void compute_layer(size_t index) {
        DeviceLayer<Real>& layer = *layers_[index];
        const plan::LayerPlan<Real>& plan = layer.plan;
        const int linear_size = plan.linear_layout.size, message_size = plan.message_layout.size;
        resize(layer.densities, atom_count(), 1);
        resize(layer.divisors, atom_count(), 1);
        resize(layer.scaled, atom_count(), linear_size);
        begin_stage(plan.moments ? "moments and messages" : "messages", Direction::forward, index, stream_,
                    [&] { return messages_work(layer, false); });
        if (plan.moments) {
            layer.compute_moments(moment_task(), layer.densities.data(), rows_to(layer.scaled, linear_size), stream_);
        } else {
            resize(sums_, atom_count(), plan.sums_layout.size);
            EdgeWeights<Real> weights;
            if (layer.edge_network) {
                layer.edge_network->compute_ends(edges_, tiles_, features_below(index), stream_);
                fill_ghosts(step_, layer.edge_network->ends(), layer.edge_network->ends_size(), Direction::forward,
                            index, stream_);
                if (step_.halo) begin_stage("messages", Direction::forward, index, stream_, kCountedBefore);
                weights = layer.edge_network->compute(edges_with_ghosts_, geometry_, step_.edges.capacity, stream_);
            }
            if (layer.messages)
                layer.messages->compute(edges_, weights, sender_rows(index), sums_.data(), layer.densities.data(),
                                        stream_);
            if constexpr (kCanFuse<Real>)
                if (layer.fused)
                    layer.fused->compute(edges_, sender_rows(index), sums_.data(), layer.densities.data(),
                                         message_scratch(layer), keeps_prepared_edges(layer), stream_);
            begin_stage("linear map of messages", Direction::forward, index, stream_,
                        [&] { return message_map_work(plan, false); });
            layer.message.apply(tiles_, rows(sums_, plan.sums_layout.size), rows_to(layer.scaled, linear_size), false,
                                stream_);
        }
        if (layer.divides_by_density())
            divide_rows(atom_count(), static_cast<Real>(plan.layer.interaction.divisor_constant),
                        static_cast<Real>(plan.layer.interaction.divisor_density), layer.densities.data(),
                        layer.divisors.data(), layer.scaled.data(), linear_size, stream_);
        if (layer.gate) {
            begin_stage("gate", Direction::forward, index, stream_, [&] { return gate_work(plan, false); });
            resize(layer.gate_inputs, atom_count(), linear_size);
            if (atom_count() > 0)
                check(cudaMemcpyAsync(layer.gate_inputs.data(), layer.scaled.data(),
                                      static_cast<size_t>(layer.scaled.size()) * sizeof(Real), cudaMemcpyDeviceToDevice,
                                      stream_),
                      "copying messages");
            layer.residual->apply(tiles_, sender_rows(index), rows_to(layer.gate_inputs, linear_size), true, stream_);
            const int gated_size = plan.gate->out_layout.size;
            resize(work_, atom_count(), gated_size);
            layer.gate->apply(atom_count(), layer.gate_inputs.data(), work_.data(), stream_);
            resize(layer.contracted_in, atom_count(), message_size);
            layer.after->apply(tiles_, rows(work_, gated_size), rows_to(layer.contracted_in, message_size), false,
                               stream_);
        } else if (layer.message_skip) {
            resize(layer.contracted_in, atom_count(), message_size);
            begin_stage("self connection of messages", Direction::forward, index, stream_,
                        [&] { return map_work(*plan.message_skip); });
            layer.message_skip->apply(tiles_, rows(layer.scaled, message_size),
                                      rows_to(layer.contracted_in, message_size), false, stream_);
        }
        const int contracted_size = plan.contraction.out_size(), features_size = plan.features_layout.size;
        resize(contracted_, atom_count(), contracted_size);
        begin_stage("contraction", Direction::forward, index, stream_, [&] { return contraction_work(plan, false); });
        layer.contraction.apply(tiles_, rows(contraction_input(layer), message_size),
                                rows_to(contracted_, contracted_size), stream_);
        resize(layer.features, atom_count(), features_size);
        begin_stage("linear maps", Direction::forward, index, stream_, [&] { return linear_maps_work(plan, false); });
        LinearCall calls[2] = {layer.linear.forward(rows(contracted_, contracted_size))};
        if (layer.skip) calls[1] = layer.skip->forward(features_below(index));
        const LinearSum sum = {std::span(calls, layer.skip ? 2 : 1), rows_to(layer.features, features_size)};
        DeviceLinear<Real>::run({&sum, 1}, tiles_, stream_);
        if (index + 1 == layers_.size()) return;
        DeviceLayer<Real>& next = *layers_[index + 1];
        const int sender_size = next.plan.sender_layout.size;
        resize(next.senders, atom_count(), sender_size);
        begin_stage("what atoms send", Direction::forward, index + 1, stream_, [&] { return map_work(next.plan.up); });
        next.up.apply(tiles_, rows(layer.features, features_size), rows_to(next.senders, sender_size), false, stream_);
        fill_ghosts(step_, next.senders.data(), sender_size, Direction::forward, index + 1, stream_);
    }

    typename DeviceLayer<Real>::MomentTask moment_task() { return {edges_, tiles_, elements_present_, moments_}; }

    // The messages, after the gate or message_skip if the layer has one.
    static const DeviceBuffer<Real>& contraction_input(const DeviceLayer<Real>& layer) {
        return layer.gate || layer.message_skip ? layer.contracted_in : layer.scaled;
    }

    // Also writes what readouts contribute to the gradients of the features.
    void compute_energies(double* energies, bool has_gradients) {
        if (repulsion_.is_there) compute_repulsion(edges_, repulsion_, energies, stream_);
        ReadoutTask<Real> task;
        task.energies = energies;
        task.energy = energy_view(step_);
        size_t done = 0;
        for (size_t l = 0; l < layers_.size(); ++l) {
            DeviceLayer<Real>& layer = *layers_[l];
            if (has_gradients) resize(layer.features_gradient, atom_count(), layer.plan.features_layout.size);
            task.features_gradient = has_gradients ? layer.features_gradient.data() : nullptr;
            task.adds_gradient = false;
            for (size_t i = 0; i < readouts_.size(); ++i) {
                if (static_cast<size_t>(weights_->readouts[i].layer) != l) continue;
                task.adds_energies = repulsion_.is_there || done > 0;
                task.is_last = ++done == readouts_.size();
                readouts_[i]->compute(atom_count(), layer.features.data(), task, stream_);
                task.adds_gradient = true;
            }
            if (has_gradients && !task.adds_gradient) layer.features_gradient.clear(stream_);
        }
    }
    void compute_descriptors(double* descriptors) {
        const int width = weights_->descriptor_count();
        int column = 0;
        for (const auto& layer : layers_) {
            const plan::RowLayout& layout = layer->plan.features_layout;
            for (size_t b = 0; b < layout.blocks.size(); ++b) {
                if (!layer->plan.layer.linear.out[static_cast<int>(b)].irrep.is_scalar()) continue;
                copy_columns(atom_count(), layout.blocks[b].copies, layer->features.data() + layout.blocks[b].offset,
                             layout.size, descriptors + column, width, stream_);
                column += layout.blocks[b].copies;
            }
        }
    }

    // ---- reverse ----

    void reverse_layer(size_t index) {
        DeviceLayer<Real>& layer = *layers_[index];
        const plan::LayerPlan<Real>& plan = layer.plan;
        const int linear_size = plan.linear_layout.size, message_size = plan.message_layout.size,
                  features_size = plan.features_layout.size;
        begin_stage("linear maps", Direction::reverse, index, stream_, [&] { return linear_maps_work(plan, true); });
        const RowsView<const Real> features_gradient = rows(layer.features_gradient, features_size);
        const int contracted_size = plan.contraction.out_size();
        resize(contracted_, atom_count(), contracted_size);
        const bool has_skip = layer.skip && index > 0;
        LinearCall calls[2] = {layer.linear.transposed(features_gradient)};
        LinearSum sums[2] = {{std::span(calls, 1), rows_to(contracted_, contracted_size)}};
        if (has_skip) {
            calls[1] = layer.skip->transposed(features_gradient);
            sums[1] = {std::span(calls + 1, 1), gradient_below(index), true};
        }
        DeviceLinear<Real>::run(std::span(sums, has_skip ? 2 : 1), tiles_, stream_);
        resize(work_, atom_count(), std::max(message_size, linear_size));
        begin_stage("contraction", Direction::reverse, index, stream_, [&] { return contraction_work(plan, true); });
        layer.contraction.reverse(tiles_, rows(contraction_input(layer), message_size),
                                  rows(contracted_, contracted_size), rows_to(work_, message_size), stream_);
        // work_ is the gradient of the contraction's input. reverse_division() needs the product of the scaled messages
        // and their gradient. Without a gate it is the same before and after message_skip.
        const Real *dot_a = work_.data(), *dot_b = contraction_input(layer).data();
        DeviceBuffer<Real>* gradient = &work_;
        if (layer.message_skip) {
            resize(more_work_, atom_count(), message_size);
            begin_stage("self connection of messages", Direction::reverse, index, stream_,
                        [&] { return map_work(*plan.message_skip); });
            layer.message_skip->apply_transposed(tiles_, rows(work_, message_size), rows_to(more_work_, message_size),
                                                 false, stream_);
            gradient = &more_work_;
        }
        if (layer.gate) {
            begin_stage("gate", Direction::reverse, index, stream_, [&] { return gate_work(plan, true); });
            const int gated_size = plan.gate->out_layout.size, sender_size = plan.sender_layout.size;
            resize(gated_, atom_count(), gated_size);
            layer.after->apply_transposed(tiles_, rows(*gradient, message_size), rows_to(gated_, gated_size), false,
                                          stream_);
            resize(more_work_, atom_count(), linear_size);
            layer.gate->reverse(atom_count(), layer.gate_inputs.data(), gated_.data(), more_work_.data(), stream_);
            gradient = &more_work_;
            dot_a = more_work_.data();
            dot_b = layer.scaled.data();
            resize(senders_gradient_, atom_count(), sender_size);
            if (index > 0)
                layer.residual->apply_transposed(tiles_, rows(*gradient, linear_size),
                                                 rows_to(senders_gradient_, sender_size), false, stream_);
        }
        begin_stage(plan.moments ? "moments and messages" : "linear map of messages", Direction::reverse, index,
                    stream_, [&] { return plan.moments ? messages_work(layer, true) : message_map_work(plan, true); });
        resize(densities_gradient_, atom_count(), 1);
        if (layer.divides_by_density())
            reverse_division(atom_count(), static_cast<Real>(plan.layer.interaction.divisor_density), dot_a, dot_b,
                             layer.gate ? linear_size : message_size, layer.divisors.data(), densities_gradient_.data(),
                             gradient->data(), linear_size, stream_);
        if (plan.moments)
            return layer.reverse_moments(moment_task(), rows(*gradient, linear_size), densities_gradient_.data(),
                                         {harmonics_gradient_.data(), distance_gradient_.data()},
                                         index + 1 < layers_.size(), stream_);
        resize(sums_, atom_count(), plan.sums_layout.size);
        layer.message.apply_transposed(tiles_, rows(*gradient, linear_size), rows_to(sums_, plan.sums_layout.size),
                                       false, stream_);
        // Unless features' gradients return, the sums of ghosts need gradients too. What is exchanged is the gradient
        // before the linear map: with several paths to an irrep it is smaller than that of the sums.
        if (!returns_gradients(layer)) {
            fill_ghosts(step_, gradient->data(), linear_size, Direction::reverse, index, stream_);
            if (plan.columns.density >= 0)
                fill_ghosts(step_, densities_gradient_.data(), 1, Direction::reverse, index, stream_);
            if (step_.halo) begin_stage("linear map of messages", Direction::reverse, index, stream_, kCountedBefore);
            if (step_.ghost_count > 0)
                layer.message.apply_transposed(step_.ghost_tiles, rows(*gradient, linear_size),
                                               rows_to(sums_, plan.sums_layout.size), false, stream_);
        }
        reverse_messages_of(index);
    }

    void reverse_messages_of(size_t index) {
        DeviceLayer<Real>& layer = *layers_[index];
        const int sender_size = layer.plan.sender_layout.size;
        const EdgeGradientsView<Real> gradients = {harmonics_gradient_.data(), distance_gradient_.data()};
        if (index > 0 && !layer.gate) {
            resize(senders_gradient_, atom_count(), sender_size);
            if (!layer.fused) senders_gradient_.clear(stream_);
        }
        Real* senders_gradient = index > 0 ? senders_gradient_.data() : nullptr;
        const bool accumulate = index + 1 < layers_.size();
        begin_stage("messages", Direction::reverse, index, stream_, [&] { return messages_work(layer, true); });
        EdgeWeights<Real> weights;
        if (layer.edge_network) weights = layer.edge_network->start_gradient(geometry_, step_.edges.capacity, stream_);
        if (layer.messages)
            layer.messages->reverse(layer.edge_network ? edges_with_ghosts_ : edges_, weights, sender_rows(index),
                                    sums_.data(), densities_gradient_.data(), gradients, accumulate, senders_gradient,
                                    stream_);
        if (layer.edge_network)
            layer.edge_network->reverse(edges_, edges_with_ghosts_, geometry_, step_.edges.capacity, tiles_,
                                        distance_gradient_.data(), index > 0 ? gradient_below(index) : RowsView<Real>{},
                                        stream_);
        if constexpr (kCanFuse<Real>)
            if (layer.fused) {
                const bool returns = index > 0 && returns_gradients(layer);
                layer.fused->reverse(returns ? edges_with_ghosts_ : edges_,
                                     senders_gradient && !returns ? edges_with_ghosts_ : edges_, geometry_.reverse,
                                     sender_rows(index), sums_.data(), densities_gradient_.data(), gradients,
                                     accumulate, {senders_gradient, layer.gate.has_value()}, message_scratch(layer),
                                     keeps_prepared_edges(layer), stream_);
                if (returns) {
                    begin_stage("exchange of rows", Direction::reverse, index, stream_);
                    step_.halo->add_back(senders_gradient, sender_size, stream_);
                }
            }
        if (index == 0) return;
        begin_stage("what atoms send", Direction::reverse, index, stream_, [&] { return map_work(layer.plan.up); });
        layer.up.apply_transposed(tiles_, rows(senders_gradient_, sender_size), gradient_below(index), true, stream_);
    }

    void compute_forces(StepResults& results) {
        reverse_edges(edges_, geometry_, {harmonics_gradient_.data(), distance_gradient_.data()}, repulsion_,
                      vector_gradient_.data(), stream_);
        write_forces(step_, vector_gradient_.data(), results, stream_);
    }

    std::shared_ptr<const Weights> weights_;
    int head_;
    MessageScratch message_scratch_;
    cudaStream_t stream_;  // of what is under way
    StepModelFacts facts_;
    plan::RowLayout first_layout_;
    std::vector<std::unique_ptr<plan::LayerPlan<Real>>> plans_;
    std::vector<std::unique_ptr<DeviceLayer<Real>>> layers_;
    std::vector<std::unique_ptr<DeviceReadout<Real>>> readouts_;
    RepulsionView repulsion_;
    DeviceBuffer<double> radii_, atomic_numbers_;
    std::vector<int> elements_present_;
    std::unordered_set<ElementSet> prepared_;

    Step step_;  // the step that is being enqueued
    TilesView tiles_;
    EdgesView<Real> edges_, edges_with_ghosts_;
    EdgeGeometry geometry_;
    DeviceBuffer<double> distance_gradient_, vector_gradient_;
    DeviceBuffer<Real> harmonics_, harmonics_gradient_;

    FirstFeatures<Real> first_;
    DeviceBuffer<Real> sums_, moments_, contracted_, work_, more_work_, gated_, senders_gradient_, densities_gradient_;
};

}  // namespace

std::string why_not_on_gpu(const Weights& weights) {
    constexpr size_t kMostShared = 80 << 10;  // every GPU from compute capability 8.0 on has this much for a block
    for (const Layer& layer : weights.layers) {
        const Interaction& interaction = layer.interaction;
        if (interaction.edge_input == Interaction::EdgeInput::features)
            if (const std::string why_not = why_no_edge_network(weights, interaction); !why_not.empty()) return why_not;
        if (interaction.gated && interaction.message_skip) return "it has a gate and a map by element after it";
        for (const IrrepBlock& block : interaction.convolution.in.blocks())
            if (kWarps * sizeof(double) *
                    static_cast<size_t>(plan::padded(block.multiplicity) * block.irrep.dimension()) >
                kMostShared)
                return "its features are too wide for the GPU's kernels";
        if (2 * kBlockThreads * sizeof(double) * static_cast<size_t>(layer.contraction.in_row_count) > kMostShared)
            return "its messages are too wide for the GPU's kernels";
    }
    for (const Readout& readout : weights.readouts)
        if (readout.last && readout.first.out.dimension() + (readout.middle ? readout.middle->out.dimension() : 0) >
                                DeviceReadout<double>::kMostHidden)
            return "its readouts are too wide for the GPU's kernels";
    return plan::why_not_on_cpu(weights);
}

MakeStepModel make_step_model(std::shared_ptr<const Weights> weights, const BackendOptions& options,
                              int64_t message_scratch_bytes) {
    const std::string why_not = why_not_on_gpu(*weights);
    if (!why_not.empty()) fail(Status::unsupported, "the GPU backend cannot run this model: ", why_not);
    return [weights, options, message_scratch_bytes](void* stream) -> std::shared_ptr<StepModel> {
        const auto on = static_cast<cudaStream_t>(stream);
        if (options.is_single()) return std::make_shared<MaceStep<float>>(weights, options, message_scratch_bytes, on);
        return std::make_shared<MaceStep<double>>(weights, options, message_scratch_bytes, on);
    };
}

std::unique_ptr<Evaluator> make_gpu_evaluator(std::shared_ptr<const Weights> weights, const BackendOptions& options,
                                              int64_t message_scratch_bytes) {
    return make_step_evaluator(options, make_step_model(std::move(weights), options, message_scratch_bytes));
}

}  // namespace mlff::mace::gpu
