// SPDX-License-Identifier: MIT
#include "nequip/gpu/evaluator.h"

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
#include "nequip/gpu/device_layer.h"
#include "nequip/gpu/readout_matrices.h"
#include "nequip/gpu/stage_work.h"
#include "nequip/plan/layer_plan.h"

namespace mlff::nequip::gpu {
namespace {

using ElementSet = std::bitset<kMaxAtomicNumber>;
constexpr const char *kAtoms = "the features of the atoms", *kEdges = "the edges";

template <class Real>
class NequipStep : public StepModel {
public:
    NequipStep(std::shared_ptr<const Weights> weights, const BackendOptions& options, int64_t message_scratch_bytes,
               cudaStream_t stream)
        : weights_(std::move(weights)),
          message_scratch_(message_scratch_bytes, options.gpu_memory_limit_bytes),
          stream_(stream),
          facts_{weights_->cutoff, weights_->atomic_numbers, weights_->descriptor_count()},
          first_layout_(weights_->first_irreps) {
        int most_shared = 0;
        check(
            cudaDeviceGetAttribute(&most_shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, gpu_ordinal(options.device)),
            "asking for the device");
        const plan::RowLayout* below = &first_layout_;
        bool has_fused = false;
        for (const Layer& layer : weights_->layers) {
            const bool can_fuse = kCanFuse<Real> && FusedMessages::can_run(layer, static_cast<size_t>(most_shared));
            const MessageOptions messages = {can_fuse && options.optimizations.fused_messages,
                                             options.precision == Precision::fast};
            plans_.push_back(std::make_unique<plan::LayerPlan<Real>>(
                *weights_, layer, *below, plan::ConvolutionOptions{.hidden_radial = messages.are_fused}));
            layers_.push_back(std::make_unique<DeviceLayer<Real>>(
                *plans_.back(), *below, harmonic_count(weights_->max_degree), messages, stream_));
            if (layers_.back()->fused) message_scratch_.add_layer(*layers_.back()->fused);
            below = &plans_.back()->features_layout;
            has_fused = has_fused || (can_fuse && !plans_.back()->moments);
        }
        if (!options.optimizations.fused_messages && !has_fused)
            fail(Status::unsupported, "fused=off: this model has no fused messages in precision ",
                 precision_name(options.precision));
        readout_.emplace(matrices_of(weights_->readout, weights_->layers.back().gate.out), *below, stream_);
        upload_elements();
    }

    const StepModelFacts& facts() const override { return facts_; }

    bool prepare(const SystemView&, const std::vector<int>& elements_present, ThreadTeam& team,
                 cudaStream_t stream) override {
        stream_ = stream;
        elements_present_ = elements_present;
        ElementSet present;
        for (int z : elements_present_) present.set(static_cast<size_t>(z));
        if (prepared_.contains(present)) return false;
        auto prepared = std::exchange(prepared_, {});  // if it fails, all are prepared again: shared buffers may differ
        for (size_t i = 0; i < layers_.size(); ++i) {
            plans_[i]->prepare(elements_present_, team);
            layers_[i]->prepare(elements_present_, stream_);
        }
        prepared.insert(present);
        prepared_ = std::move(prepared);
        return true;
    }

    void list_buffers(BufferList& list, const StepSize& size) override {
        const int64_t atoms = size.atoms, edges = size.edges, harmonics = harmonic_count(weights_->max_degree);
        const bool has_gradients = size.wanted.gradients();
        list.add(harmonics_, edges * harmonics, kEdges);
        message_scratch_.list(list, atoms, edges, has_gradients);
        if (has_gradients) {
            list.add(harmonics_gradient_, edges * harmonics, kEdges);
            list.add(distance_gradient_, edges, kEdges);
            list.add(vector_gradient_, 3 * edges, kEdges);
        }
        for (size_t i = 0; i < layers_.size(); ++i) {
            DeviceLayer<Real>& layer = *layers_[i];
            const plan::LayerPlan<Real>& plan = layer.plan;
            const int64_t linear = atoms * plan.linear_layout.size, senders = atoms * plan.sender_layout.size,
                          features = atoms * plan.features_layout.size;
            if (plan.moments)
                layer.list_moments(list, moments_, atoms, elements_present_);
            else
                list.add(sums_, atoms * plan.sums_layout.size, kAtoms);
            list.add(layer.gate_inputs, linear, kAtoms);
            if (plan.norm) list.add(normed_, linear, kAtoms);
            list.add(layer.features, features, kAtoms);
            if (i > 0) list.add(layer.senders, senders, kAtoms);
            if (!has_gradients) continue;
            list.add(layer.features_gradient, features, kAtoms);
            list.add(inputs_gradient_, linear, kAtoms);
            if (i > 0) list.add(senders_gradient_, senders, kAtoms);
        }
    }

    int64_t most_ghost_row_bytes() const override {
        int most = 1;
        for (const auto& plan : plans_) most = std::max({most, plan->sender_layout.size, plan->linear_layout.size});
        return int64_t{most} * static_cast<int64_t>(sizeof(Real));
    }

    void enqueue(const Step& step, StepResults& results, cudaStream_t stream) override {
        const Wanted& wanted = step.wanted;
        stream_ = stream;
        step_ = step;
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
        compute_harmonics(edges_with_ghosts_, geometry_, {lowest_distance(), results.short_edges.data()},
                          harmonics_.data(), stream_);
        for (size_t i = 0; i < layers_.size(); ++i) compute_layer(i);
        begin_stage("readout", Direction::forward, stream_,
                    [&] { return readout_work<Real>(*weights_, wanted.gradients()); });
        compute_energies(results.energies.data());
        if (wanted.gradients()) {
            for (size_t i = layers_.size(); i-- > 0;) reverse_layer(i);
            begin_stage("harmonics and forces", Direction::reverse, stream_,
                        [&] { return forces_work<Real>(*weights_, wanted.virials()); });
            reverse_edges(edges_, geometry_, edge_gradients(), {}, vector_gradient_.data(), stream_);
            write_forces(step_, vector_gradient_.data(), results, stream_);
        }
        if (wanted.descriptors) compute_descriptors(results.descriptors.data());
    }
    EnergyView energy_view(const Step& step) const override { return {step.edges.elements, energies_.data(), 1, 0}; }

    [[noreturn]] void refuse_short_edges() const override {
        fail(Status::system, "two atoms are not more than ", lowest_distance(),
             " angstrom apart, where the GPU's tables of radial functions end; --device cpu can evaluate this");
    }

private:
    using LinearCall = typename DeviceLinear<Real>::Call;
    using LinearSum = typename DeviceLinear<Real>::Sum;

    double lowest_distance() const { return plans_.front()->lowest_distance; }
    int64_t atom_count() const { return edges_.atom_count; }
    MessageScratch::OfLayer message_scratch(const DeviceLayer<Real>& layer) const {
        return message_scratch_.of(*layer.fused, atom_count(), step_.edges.capacity);
    }
    EdgeGradientsView<Real> edge_gradients() const { return {harmonics_gradient_.data(), distance_gradient_.data()}; }
    typename DeviceLayer<Real>::MomentTask moment_task() { return {edges_, step_.tiles, elements_present_, moments_}; }

    // Whether the gradients of ghosts' features go back to the domains that own the atoms. Otherwise each domain needs
    // gradients of the messages of its ghosts, which are larger, and computes their edges too. The answer must be the
    // same in all domains, also in one without atoms.
    bool returns_gradients(const DeviceLayer<Real>& layer) const {
        return layer.fused.has_value() && layer.plan.sender_layout.size % 4 == 0 && step_.halo &&
               step_.halo->can_add_back();
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
        const plan::ConvolutionPlan<Real>& plan = layer.plan;
        if (layer.moments) return moments_work(plan, std::span<const int>(elements_present_), is_reverse);
        if (layer.messages) return table_messages_work(plan, is_reverse);
        return fused_messages_work(plan, {keeps_prepared_edges(layer), layer.fused->partial_count()}, is_reverse);
    }
    // For a stage that continues after an exchange of rows. Work on ghosts is not counted.
    static constexpr StepWork kCountedBefore{};

    static void resize(DeviceBuffer<Real>& buffer, int64_t rows, int64_t size) {
        use_listed(buffer, rows * size, kAtoms);
    }
    static RowsView<const Real> rows(const DeviceBuffer<Real>& buffer, int size) {
        return {buffer.data(), size, nullptr};
    }
    static RowsView<Real> rows_to(DeviceBuffer<Real>& buffer, int size) { return {buffer.data(), size, nullptr}; }
    RowsView<const Real> sender_rows(size_t layer) const {
        const int size = plans_[layer]->sender_layout.size;
        if (layer == 0) return {first_senders_.data(), size, edges_.elements};
        return rows(layers_[layer]->senders, size);
    }
    RowsView<const Real> features_below(size_t layer) const {
        if (layer == 0) return {first_features_.data(), first_layout_.size, edges_.elements};
        return rows(layers_[layer - 1]->features, plans_[layer - 1]->features_layout.size);
    }
    RowsView<Real> gradient_below(size_t layer) {
        return rows_to(layers_[layer - 1]->features_gradient, plans_[layer - 1]->features_layout.size);
    }

    // What depends on elements alone: first features, what atoms send in the first layer, and energies.
    void upload_elements() {
        const plan::LayerPlan<Real>& plan = *plans_.front();
        const auto element_count = static_cast<size_t>(weights_->element_count()),
                   width = static_cast<size_t>(weights_->first_irreps.dimension()),
                   size = static_cast<size_t>(first_layout_.size),
                   sender_size = static_cast<size_t>(plan.sender_layout.size);
        std::vector<Real> features(element_count * size), senders(element_count * sender_size);
        std::vector<double> sent(static_cast<size_t>(plan.layer.up.out.dimension()));
        std::vector<ElementEnergy> energies;
        for (size_t z = 0; z < element_count; ++z) {
            const double* first = weights_->first_features.data() + z * width;
            plan::to_rows(weights_->first_irreps, first_layout_, first, features.data() + z * size);
            compute_linear(plan.layer.up, static_cast<int>(z), first, sent.data());
            plan::to_rows(plan.layer.up.out, plan.sender_layout, sent.data(), senders.data() + z * sender_size);
            energies.push_back({weights_->shift[z], 0, weights_->scale[z]});
        }
        upload(first_features_, features, stream_);
        upload(first_senders_, senders, stream_);
        upload(energies_, energies, stream_);
    }

    void add_bias_to(DeviceBuffer<Real>& to, const DeviceBuffer<Real>& bias, int size) {
        if (bias.size() > 0) add_bias(atom_count(), bias.data(), to.data(), size, stream_);
    }

    // ---- forward ----

    void compute_layer(size_t index) {
        DeviceLayer<Real>& layer = *layers_[index];
        const plan::LayerPlan<Real>& plan = layer.plan;
        const int inputs_size = plan.linear_layout.size, features_size = plan.features_layout.size;
        resize(layer.gate_inputs, atom_count(), inputs_size);
        begin_stage(plan.moments ? "moments and messages" : "messages", Direction::forward, index, stream_,
                    [&] { return messages_work(layer, false); });
        LinearCall calls[2];
        size_t call_count = 0;
        if (plan.moments) {
            layer.compute_moments(moment_task(), nullptr, rows_to(layer.gate_inputs, inputs_size), stream_);
        } else {
            resize(sums_, atom_count(), plan.sums_layout.size);
            if (layer.messages) layer.messages->compute(edges_, {}, sender_rows(index), sums_.data(), nullptr, stream_);
            if constexpr (kCanFuse<Real>)
                if (layer.fused)
                    layer.fused->compute(edges_, sender_rows(index), sums_.data(), nullptr, message_scratch(layer),
                                         keeps_prepared_edges(layer), stream_);
            calls[call_count++] = layer.message.forward(rows(sums_, plan.sums_layout.size));
        }
        begin_stage("linear maps", Direction::forward, index, stream_, [&] { return linear_maps_work(plan, false); });
        calls[call_count++] = layer.self_connection.forward(features_below(index));
        const LinearSum sum = {std::span(calls, call_count), rows_to(layer.gate_inputs, inputs_size),
                               plan.moments.has_value()};
        DeviceLinear<Real>::run({&sum, 1}, step_.tiles, stream_);
        add_bias_to(layer.gate_inputs, layer.message_bias, inputs_size);
        begin_stage("gate", Direction::forward, index, stream_, [&] { return gate_work(plan, false); });
        resize(layer.features, atom_count(), features_size);
        layer.gate.apply(atom_count(), normed_inputs(layer), layer.features.data(), stream_);
        if (index + 1 == layers_.size()) return;
        DeviceLayer<Real>& next = *layers_[index + 1];
        const int sender_size = next.plan.sender_layout.size;
        resize(next.senders, atom_count(), sender_size);
        begin_stage("what atoms send", Direction::forward, index + 1, stream_, [&] { return map_work(next.plan.up); });
        next.up.apply(step_.tiles, rows(layer.features, features_size), rows_to(next.senders, sender_size), false,
                      stream_);
        add_bias_to(next.senders, next.up_bias, sender_size);
        fill_ghosts(step_, next.senders.data(), sender_size, Direction::forward, index + 1, stream_);
    }

    const Real* normed_inputs(const DeviceLayer<Real>& layer) {
        if (!layer.norm) return layer.gate_inputs.data();
        resize(normed_, atom_count(), layer.plan.linear_layout.size);
        layer.norm->apply(atom_count(), layer.gate_inputs.data(), normed_.data(), stream_);
        return normed_.data();
    }

    // Also writes the gradients of the last features.
    void compute_energies(double* energies) {
        DeviceLayer<Real>& last = *layers_.back();
        ReadoutTask<Real> task;
        task.energies = energies;
        task.energy = energy_view(step_);
        task.is_last = true;
        if (step_.wanted.gradients()) {
            resize(last.features_gradient, atom_count(), last.plan.features_layout.size);
            task.features_gradient = last.features_gradient.data();
        }
        readout_->compute(atom_count(), last.features.data(), task, stream_);
    }

    void compute_descriptors(double* descriptors) {
        const int width = weights_->descriptor_count();
        int column = 0;
        for (const auto& layer : layers_) {
            const plan::RowLayout& layout = layer->plan.features_layout;
            for (size_t b = 0; b < layout.blocks.size(); ++b) {
                if (!layer->plan.layer.gate.out[static_cast<int>(b)].irrep.is_scalar()) continue;
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
        const int inputs_size = plan.linear_layout.size, sums_size = plan.sums_layout.size;
        begin_stage("gate", Direction::reverse, index, stream_, [&] { return gate_work(plan, true); });
        resize(inputs_gradient_, atom_count(), inputs_size);
        layer.gate.reverse(atom_count(), normed_inputs(layer), layer.features_gradient.data(), inputs_gradient_.data(),
                           stream_);
        if (layer.norm) layer.norm->reverse(atom_count(), layer.gate_inputs.data(), inputs_gradient_.data(), stream_);
        begin_stage("linear maps", Direction::reverse, index, stream_, [&] { return linear_maps_work(plan, true); });
        const RowsView<const Real> gradient = rows(inputs_gradient_, inputs_size);
        const LinearCall calls[2] = {layer.message.transposed(gradient), layer.self_connection.transposed(gradient)};
        LinearSum sums[2];
        size_t sum_count = 0;
        if (!plan.moments) {
            resize(sums_, atom_count(), sums_size);
            sums[sum_count++] = {std::span(calls, 1), rows_to(sums_, sums_size)};
        }
        if (index > 0) {
            DeviceLayer<Real>& below = *layers_[index - 1];
            resize(below.features_gradient, atom_count(), below.plan.features_layout.size);
            sums[sum_count++] = {std::span(calls + 1, 1), gradient_below(index)};
        }
        DeviceLinear<Real>::run(std::span(sums, sum_count), step_.tiles, stream_);
        if (plan.moments) {
            begin_stage("moments and messages", Direction::reverse, index, stream_,
                        [&] { return messages_work(layer, true); });
            return layer.reverse_moments(moment_task(), gradient, nullptr, edge_gradients(), index + 1 < layers_.size(),
                                         stream_);
        }
        // Unless features' gradients return, the sums of ghosts need gradients too. What is exchanged is the gradient
        // before the linear map: with several paths to an irrep it is smaller than that of the sums.
        if (!returns_gradients(layer)) {
            fill_ghosts(step_, inputs_gradient_.data(), inputs_size, Direction::reverse, index, stream_);
            if (step_.halo) begin_stage("linear maps", Direction::reverse, index, stream_, kCountedBefore);
            if (step_.ghost_count > 0)
                layer.message.apply_transposed(step_.ghost_tiles, gradient, rows_to(sums_, sums_size), false, stream_);
        }
        reverse_messages_of(index);
    }

    void reverse_messages_of(size_t index) {
        DeviceLayer<Real>& layer = *layers_[index];
        const int sender_size = layer.plan.sender_layout.size;
        const bool has_senders = index > 0, accumulate = index + 1 < layers_.size();
        if (has_senders) {
            resize(senders_gradient_, atom_count(), sender_size);
            if (layer.messages) senders_gradient_.clear(stream_);
        }
        Real* senders_gradient = has_senders ? senders_gradient_.data() : nullptr;
        begin_stage("messages", Direction::reverse, index, stream_, [&] { return messages_work(layer, true); });
        if (layer.messages)
            layer.messages->reverse(edges_, {}, sender_rows(index), sums_.data(), nullptr, edge_gradients(), accumulate,
                                    senders_gradient, stream_);
        if constexpr (kCanFuse<Real>)
            if (layer.fused) {
                const bool returns = has_senders && returns_gradients(layer);
                layer.fused->reverse(
                    returns ? edges_with_ghosts_ : edges_, has_senders && !returns ? edges_with_ghosts_ : edges_,
                    geometry_.reverse, sender_rows(index), sums_.data(), nullptr, edge_gradients(), accumulate,
                    {senders_gradient, false}, message_scratch(layer), keeps_prepared_edges(layer), stream_);
                if (returns) {
                    begin_stage("exchange of rows", Direction::reverse, index, stream_);
                    step_.halo->add_back(senders_gradient, sender_size, stream_);
                }
            }
        if (!has_senders) return;
        begin_stage("what atoms send", Direction::reverse, index, stream_, [&] { return map_work(layer.plan.up); });
        layer.up.apply_transposed(step_.tiles, rows(senders_gradient_, sender_size), gradient_below(index), true,
                                  stream_);
    }

    std::shared_ptr<const Weights> weights_;
    MessageScratch message_scratch_;
    cudaStream_t stream_;  // of what is under way
    StepModelFacts facts_;
    plan::RowLayout first_layout_;
    std::vector<std::unique_ptr<plan::LayerPlan<Real>>> plans_;
    std::vector<std::unique_ptr<DeviceLayer<Real>>> layers_;
    std::optional<DeviceReadout<Real>> readout_;
    DeviceBuffer<Real> first_features_, first_senders_;  // [element][...]
    DeviceBuffer<ElementEnergy> energies_;               // [element]
    std::vector<int> elements_present_;
    std::unordered_set<ElementSet> prepared_;

    Step step_;  // the step that is being enqueued
    EdgesView<Real> edges_, edges_with_ghosts_;
    EdgeGeometry geometry_;
    DeviceBuffer<double> distance_gradient_, vector_gradient_;
    DeviceBuffer<Real> harmonics_, harmonics_gradient_;
    DeviceBuffer<Real> sums_, moments_, normed_, inputs_gradient_, senders_gradient_;
};

}  // namespace

std::string why_not_on_gpu(const Weights& weights) {
    constexpr size_t kMostShared = 80 << 10;  // every GPU from compute capability 8.0 on has this much for a block
    for (const Layer& layer : weights.layers)
        for (const IrrepBlock& block : layer.convolution.in.blocks())
            if (kWarps * sizeof(double) *
                    static_cast<size_t>(plan::padded(block.multiplicity) * block.irrep.dimension()) >
                kMostShared)
                return "its features are too wide for the GPU's kernels";
    int hidden = 0;
    for (size_t i = 0; i + 1 < weights.readout.layers.size(); ++i) hidden += weights.readout.layers[i].out_width;
    if (hidden > DeviceReadout<double>::kMostHidden) return "its readout is too wide for the GPU's kernels";
    return why_no_matrices(weights.readout);
}

MakeStepModel make_step_model(std::shared_ptr<const Weights> weights, const BackendOptions& options,
                              int64_t message_scratch_bytes) {
    const std::string why_not = why_not_on_gpu(*weights);
    if (!why_not.empty()) fail(Status::unsupported, "the GPU backend cannot run this model: ", why_not);
    return [weights, options, message_scratch_bytes](void* stream) -> std::shared_ptr<StepModel> {
        const auto on = static_cast<cudaStream_t>(stream);
        if (options.is_single())
            return std::make_shared<NequipStep<float>>(weights, options, message_scratch_bytes, on);
        return std::make_shared<NequipStep<double>>(weights, options, message_scratch_bytes, on);
    };
}

std::unique_ptr<Evaluator> make_gpu_evaluator(std::shared_ptr<const Weights> weights, const BackendOptions& options,
                                              int64_t message_scratch_bytes) {
    return make_step_evaluator(options, make_step_model(std::move(weights), options, message_scratch_bytes));
}

}  // namespace mlff::nequip::gpu
