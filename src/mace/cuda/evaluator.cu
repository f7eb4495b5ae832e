// SPDX-License-Identifier: MIT
#include "mace/cuda/evaluator.h"

#include <algorithm>
#include <map>
#include <new>
#include <optional>
#include <span>

#include "core/error.h"
#include "device/cuda_check.h"
#include "device/device_buffer.h"
#include "mace/cpu/layer_plan.h"
#include "mace/cuda/atoms.h"
#include "mace/cuda/contraction.h"
#include "mace/cuda/edges.h"
#include "mace/cuda/fused_messages.h"
#include "mace/cuda/linear.h"
#include "mace/cuda/messages.h"
#include "mace/cuda/moments.h"
#include "mace/reference/embedding.h"
#include "mace/reference/linear.h"
#include "mace/spherical_harmonics.h"
#include "neighbors/gpu/gpu_neighbor_list.h"

namespace mlff::mace::cuda {
namespace {

using mlff::cuda::check;
using mlff::cuda::DeviceBuffer;

// Makes a device current and the caller's again at the end.
class CurrentDevice {
public:
    explicit CurrentDevice(int device) {
        check(cudaGetDevice(&before_), "asking for the device");
        check(cudaSetDevice(device), "choosing the device");
    }
    CurrentDevice(int device, std::nothrow_t) {
        cudaGetDevice(&before_);
        cudaSetDevice(device);
    }
    CurrentDevice(const CurrentDevice&) = delete;
    CurrentDevice& operator=(const CurrentDevice&) = delete;
    ~CurrentDevice() { cudaSetDevice(before_); }

private:
    int before_ = 0;
};

class Stream {
public:
    Stream() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "making a stream"); }
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;
    ~Stream() { cudaStreamDestroy(stream_); }
    operator cudaStream_t() const { return stream_; }

private:
    cudaStream_t stream_ = nullptr;
};

// A graph that can be launched; takes over `captured`.
struct Graph {
    explicit Graph(cudaGraph_t captured) {
        const cudaError_t status = cudaGraphInstantiate(&handle, captured, 0);
        cudaGraphDestroy(captured);
        check(status, "making a graph of the step");
    }
    Graph(const Graph&) = delete;
    Graph& operator=(const Graph&) = delete;
    ~Graph() { cudaGraphExecDestroy(handle); }

    cudaGraphExec_t handle = nullptr;
};

struct MessageOptions {
    bool are_fused = false, is_fast = false;
    size_t most_shared = 0;  // bytes of shared memory for a block
};

// A layer on the device, beside the host's plan that it was made from.
template <class Real>
struct DeviceLayer {
    DeviceLayer(const cpu::LayerPlan<Real>& plan_in, const cpu::RowLayout& below, int harmonic_count, int element_count, const MessageOptions& options, cudaStream_t stream)
        : plan(plan_in),
          up(plan.layer.interaction.up, below, plan.sender_layout, stream),
          message(plan.layer.interaction.message, plan.sums_layout, plan.linear_layout, stream),
          linear(plan.layer.linear, cpu::RowLayout(plan.layer.contraction.out), plan.features_layout, stream),
          contraction(plan.contraction, element_count, stream) {
        const Interaction& interaction = plan.layer.interaction;
        if (plan.moments)
            moments.emplace(plan, harmonic_count, stream);
        else if (options.are_fused)
            fused.emplace(plan, harmonic_count, options.most_shared, options.is_fast, stream);
        else
            messages.emplace(plan, harmonic_count, stream);
        if (interaction.message_skip) message_skip.emplace(*interaction.message_skip, plan.message_layout, plan.message_layout, stream);
        if (plan.skip) skip.emplace(*interaction.skip, below, plan.features_layout, stream);
        if (interaction.gated) {
            residual.emplace(interaction.gated->residual, plan.sender_layout, plan.linear_layout, stream);
            after.emplace(interaction.gated->after, plan.gate->out_layout, plan.message_layout, stream);
            gate.emplace(*plan.gate, stream);
        }
    }

    const cpu::LayerPlan<Real>& plan;
    DeviceLinear<Real> up, message, linear;
    std::optional<DeviceLinear<Real>> message_skip, skip, residual, after;
    std::optional<DeviceGate<Real>> gate;
    std::optional<FusedMessages<Real>> fused;
    std::optional<DeviceMoments<Real>> moments;
    std::optional<DeviceMessages<Real>> messages;  // where neither
    DeviceContraction<Real> contraction;
    std::map<int, DeviceLinear<Real>> moment_maps;  // by the sender's element

    // Copies what the plan has prepared for these elements.
    void prepare(const std::vector<int>& elements, cudaStream_t stream) {
        if (fused) fused->prepare(stream);
        if (messages) messages->prepare(stream);
        if (moments) moments->prepare(stream);
        contraction.prepare(elements, stream);
        if (!plan.moments) return;
        for (int z : elements)
            if (!moment_maps.contains(z)) moment_maps.try_emplace(z, plan.moments->plain_map(z), plan.moments->layout(), plan.linear_layout, stream);
    }

    // [atom][...]
    DeviceBuffer<Real> senders;      // by element in the first layer
    DeviceBuffer<Real> scaled;       // linear maps of the sums, divided; the gate's input without the residual
    DeviceBuffer<Real> gate_inputs;
    DeviceBuffer<Real> contracted_in;  // what the contraction takes
    DeviceBuffer<Real> features, features_gradient;
    DeviceBuffer<Real> densities, divisors;
};

template <class Real>
class CudaEvaluator : public Evaluator {
public:
    CudaEvaluator(std::shared_ptr<const Weights> weights, const CudaOptions& options)
        : weights_(std::move(weights)), options_(options), current_(options.device), neighbors_(neighbor_options()) {
        const int element_count = weights_->element_count();
        int most_shared = 0;
        check(cudaDeviceGetAttribute(&most_shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, options.device), "asking for the device");
        Irreps scalars;
        scalars.append(weights_->channel_count, Irrep{});
        first_layout_ = cpu::RowLayout(scalars);
        const cpu::RowLayout* below = &first_layout_;
        for (const Layer& layer : weights_->layers) {
            const MessageOptions messages = {FusedMessages<Real>::can_run(layer.interaction, static_cast<size_t>(most_shared)), options.is_fast, static_cast<size_t>(most_shared)};
            plans_.push_back(std::make_unique<cpu::LayerPlan<Real>>(*weights_, layer, *below, cpu::LayerOptions{.hidden_radial = messages.are_fused}));
            layers_.push_back(std::make_unique<DeviceLayer<Real>>(*plans_.back(), *below, harmonic_count(weights_->max_degree), element_count, messages, stream_));
            below = &plans_.back()->features_layout;
        }
        for (const Readout& readout : weights_->readouts) {
            const cpu::LayerPlan<Real>& plan = *plans_[static_cast<size_t>(readout.layer)];
            readouts_.push_back(std::make_unique<DeviceReadout<Real>>(readout, options.head, plan.layer.linear.out, plan.features_layout, stream_));
        }
        if (weights_->repulsion) upload_repulsion();
        current_.reset();
    }
    ~CudaEvaluator() override { current_.emplace(options_.device, std::nothrow); }  // memory is given back where it was taken

    bool needs_edges() const override { return false; }
    int64_t neighbor_build_count() const override { return neighbors_.build_count(); }

    void evaluate(const SystemView& system, const Edges&, const Outputs& outputs, ThreadTeam& team) override {
        const CurrentDevice current(options_.device);
        sort_atoms(system, team);
        compute_first_features(system);
        find_edges(system);
        const bool wants_forces = outputs.forces || outputs.virial || outputs.atom_virials;
        run_step(wants_forces);
        check(cudaStreamSynchronize(stream_), "the evaluation");
        const bool has_short_edge = *host_flag_.data() != 0;
        if (has_short_edge && cpu::lowest_distance(weights_->radial) == 0) fail(Status::system, "two atoms are at the same place");
        if (has_short_edge)
            fail(Status::system, "two atoms are not more than ", cpu::lowest_distance(weights_->radial),
                 " angstrom apart, where the GPU's tables of radial functions end; --device cpu can evaluate this");
        write_energies(outputs);
        write_descriptors(outputs);
        if (outputs.forces) std::copy_n(host_forces_.data(), 3 * atom_count(), outputs.forces);
        if (outputs.virial) std::copy_n(host_virial_.data(), 9, outputs.virial);
        if (outputs.atom_virials) std::copy_n(host_virials_.data(), 9 * atom_count(), outputs.atom_virials);
    }

private:
    // ---- the step: everything after the neighbours, as one CUDA graph once its sizes and addresses have settled ----

    struct StepKey {
        EdgesView<Real> edges;
        EdgeGeometry geometry;
        int64_t atoms_version = 0, growth_count = 0;
        int64_t edge_capacity = 0;
        bool wants_forces = false;

        bool operator==(const StepKey&) const = default;
    };

    void run_step(bool wants_forces) {
        const StepKey key = {edges_, geometry_, atoms_version_, growth_count_, edge_capacity_, wants_forces};
        if (graph_ && key == graph_key_) return check(cudaGraphLaunch(graph_->handle, stream_), "the step");
        if (!(key == last_key_)) {  // sizes may change: memory grows as needed
            enqueue_step(wants_forces);
            last_key_ = key;
            last_key_.growth_count = growth_count_;
            return;
        }
        graph_.reset();
        check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "capturing the step");
        cudaGraph_t captured = nullptr;
        try {
            enqueue_step(wants_forces);
        } catch (...) {
            cudaStreamEndCapture(stream_, &captured);
            if (captured) cudaGraphDestroy(captured);
            throw;
        }
        check(cudaStreamEndCapture(stream_, &captured), "capturing the step");
        graph_.emplace(captured);
        graph_key_ = key;
        check(cudaGraphLaunch(graph_->handle, stream_), "the step");
    }

    void enqueue_step(bool wants_forces) {
        short_edges_.clear(stream_);
        find_short_edges(edges_, cpu::lowest_distance(weights_->radial), short_edges_.data(), stream_);
        compute_harmonics(edges_, geometry_, harmonics_.data(), stream_);
        for (size_t i = 0; i < layers_.size(); ++i) compute_layer(i);
        compute_energies();
        short_edges_.download(host_flag_.data(), 1, stream_);
        energies_.download(host_energies_.data(), atom_count(), stream_);
        if (!wants_forces) return;
        start_gradients();
        for (size_t i = layers_.size(); i-- > 0;) reverse_layer(i);
        compute_forces();
    }

    NeighborOptions neighbor_options() const {
        NeighborOptions options;
        options.cutoff = weights_->cutoff;
        options.skin = options_.neighbor_skin;
        options.want_shifts = false;
        options.want_reverse = true;
        return options;
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
        repulsion_.scale = weights_->scale[static_cast<size_t>(options_.head)];
    }

    // ---- atoms and edges ----

    // Atoms by element, in tiles; done again only when the atoms are others than before.
    void sort_atoms(const SystemView& system, ThreadTeam& team) {
        std::vector<int32_t> elements(static_cast<size_t>(system.atom_count));
        for (size_t atom = 0; atom < elements.size(); ++atom) elements[atom] = weights_->element_of(system.atomic_numbers[atom]);
        if (is_sorted_ && elements == elements_) return;
        is_sorted_ = false;
        elements_ = std::move(elements);
        elements_present_.clear();
        std::vector<int32_t> order;
        std::vector<Tile> tiles;
        for (int32_t z = 0; z < weights_->element_count(); ++z) {
            const auto begin = static_cast<int32_t>(order.size());
            for (size_t atom = 0; atom < elements_.size(); ++atom)
                if (elements_[atom] == z) order.push_back(static_cast<int32_t>(atom));
            const auto end = static_cast<int32_t>(order.size());
            if (end > begin) elements_present_.push_back(z);
            for (int32_t at = begin; at < end; at += kAtomsPerTile) tiles.push_back({at, std::min(kAtomsPerTile, end - at), z});
        }
        order_.upload(order.data(), static_cast<int64_t>(order.size()), "the atoms", stream_);
        tiles_buffer_.upload(tiles.data(), static_cast<int64_t>(tiles.size()), "the atoms", stream_);
        device_elements_.upload(elements_.data(), static_cast<int64_t>(elements_.size()), "the atoms", stream_);
        tiles_ = {tiles_buffer_.data(), order_.data(), static_cast<int32_t>(tiles.size()), static_cast<int32_t>(order.size())};
        for (size_t i = 0; i < layers_.size(); ++i) {
            plans_[i]->prepare(elements_present_, team);
            layers_[i]->prepare(elements_present_, stream_);
        }
        is_sorted_ = true;
        has_first_features_ = false;
        ++atoms_version_;
    }

    void find_edges(const SystemView& system) {
        positions_.resize_discard(3 * system.atom_count, "the atoms");
        host_positions_.resize_discard(3 * system.atom_count);
        std::copy_n(system.positions, 3 * system.atom_count, host_positions_.data());
        if (system.atom_count > 0)
            check(cudaMemcpyAsync(positions_.data(), host_positions_.data(), static_cast<size_t>(3 * system.atom_count) * sizeof(double), cudaMemcpyHostToDevice, stream_),
                  "copying positions");
        SystemView on_device = system;
        on_device.positions = positions_.data();
        neighbors_.update(on_device, static_cast<cudaStream_t>(stream_));
        const GpuEdges<double>& found = neighbors_.edges();
        const int count = harmonic_count(weights_->max_degree);
        resize(harmonics_, found.edge_capacity, count, "the edges");
        edges_ = {static_cast<int32_t>(system.atom_count), found.first, found.sender, found.distance, device_elements_.data(), harmonics_.data(), count};
        geometry_ = {found.vector, found.reverse, weights_->max_degree};
        resize(harmonics_gradient_, found.edge_capacity, count, "the edges");
        resize(distance_gradient_, found.edge_capacity, 1, "the edges");
        resize(vector_gradient_, found.edge_capacity, 3, "the edges");
        resize(short_edges_, 1, 1, "the edges");
        edge_capacity_ = found.edge_capacity;
        resize(message_scratch_, message_scratch_bytes(system.atom_count, edge_capacity_), 1, "the messages");
        host_flag_.resize_discard(1);
        host_energies_.resize_discard(system.atom_count);
        host_forces_.resize_discard(3 * system.atom_count);
        host_virials_.resize_discard(9 * system.atom_count);
        host_virial_.resize_discard(9);
    }

    // Growing moves memory, which voids a captured graph.
    template <class T>
    void resize(DeviceBuffer<T>& buffer, int64_t rows, int64_t size, const char* purpose = "the features of the atoms") {
        if (rows * size > buffer.capacity()) ++growth_count_;
        buffer.resize_discard(rows * size, purpose);
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
        return {layers_[layer]->senders.data(), plans_[layer]->sender_layout.size, layer == 0 ? device_elements_.data() : nullptr};
    }
    RowsView<const Real> features_below(size_t layer) const {
        if (layer == 0) return {first_features_.data(), first_layout_.size, device_elements_.data()};
        return rows(layers_[layer - 1]->features, plans_[layer - 1]->features_layout.size);
    }
    RowsView<Real> gradient_below(size_t layer) { return rows_to(layers_[layer - 1]->features_gradient, plans_[layer - 1]->features_layout.size); }

    // ---- forward ----

    // All atoms of an element are alike; done on the host, where charge and spin do not change for most models.
    void compute_first_features(const SystemView& system) {
        if (has_first_features_ && (!weights_->joint_embedding || (system.total_charge == charge_ && system.spin_multiplicity == spin_))) return;
        has_first_features_ = false;
        std::vector<int> elements(static_cast<size_t>(weights_->element_count()));
        for (size_t z = 0; z < elements.size(); ++z) elements[z] = static_cast<int>(z);
        reference::compute_embedding(*weights_, system, elements, embedding_);
        const Linear& up = weights_->layers.front().interaction.up;
        const cpu::RowLayout& sender_layout = plans_.front()->sender_layout;
        const auto channels = static_cast<size_t>(weights_->channel_count);
        std::vector<Real> features(elements.size() * static_cast<size_t>(first_layout_.size), Real(0)), senders(elements.size() * static_cast<size_t>(sender_layout.size));
        std::vector<double> plain(static_cast<size_t>(up.out.dimension()));
        for (size_t z = 0; z < elements.size(); ++z) {
            const double* own = embedding_.data() + z * channels;
            for (size_t u = 0; u < channels; ++u) features[z * static_cast<size_t>(first_layout_.size) + u] = static_cast<Real>(own[u]);
            reference::compute_linear(up, static_cast<int>(z), own, plain.data());
            cpu::to_rows(up.out, sender_layout, plain.data(), senders.data() + z * static_cast<size_t>(sender_layout.size));
        }
        first_features_.upload(features.data(), static_cast<int64_t>(features.size()), "the model", stream_);
        layers_.front()->senders.upload(senders.data(), static_cast<int64_t>(senders.size()), "the model", stream_);
        charge_ = system.total_charge;
        spin_ = system.spin_multiplicity;
        has_first_features_ = true;
    }

    void compute_layer(size_t index) {
        DeviceLayer<Real>& layer = *layers_[index];
        const cpu::LayerPlan<Real>& plan = layer.plan;
        const Interaction& interaction = plan.layer.interaction;
        const int linear_size = plan.linear_layout.size, message_size = plan.message_layout.size;
        resize(layer.densities, atom_count(), 1);
        resize(layer.divisors, atom_count(), 1);
        resize(layer.scaled, atom_count(), linear_size);
        if (plan.moments) {
            compute_moments(layer);
        } else {
            resize(sums_, atom_count(), plan.sums_layout.size);
            if (layer.fused)
                layer.fused->compute(edges_, sender_rows(index), sums_.data(), layer.densities.data(), message_scratch(), stream_);
            else
                layer.messages->compute(edges_, sender_rows(index), sums_.data(), layer.densities.data(), stream_);
            layer.message.apply(tiles_, rows(sums_, plan.sums_layout.size), rows_to(layer.scaled, linear_size), false, stream_);
        }
        divide_rows(atom_count(), static_cast<Real>(interaction.divisor_constant), static_cast<Real>(interaction.divisor_density), layer.densities.data(),
                    layer.divisors.data(), layer.scaled.data(), linear_size, stream_);
        if (layer.gate) {
            resize(layer.gate_inputs, atom_count(), linear_size);
            if (atom_count() > 0)
                check(cudaMemcpyAsync(layer.gate_inputs.data(), layer.scaled.data(), static_cast<size_t>(layer.scaled.size()) * sizeof(Real), cudaMemcpyDeviceToDevice, stream_),
                      "copying messages");
            layer.residual->apply(tiles_, sender_rows(index), rows_to(layer.gate_inputs, linear_size), true, stream_);
            const int gated_size = plan.gate->out_layout.size;
            resize(work_, atom_count(), gated_size);
            layer.gate->apply(atom_count(), layer.gate_inputs.data(), work_.data(), stream_);
            resize(layer.contracted_in, atom_count(), message_size);
            layer.after->apply(tiles_, rows(work_, gated_size), rows_to(layer.contracted_in, message_size), false, stream_);
        } else if (layer.message_skip) {
            resize(layer.contracted_in, atom_count(), message_size);
            layer.message_skip->apply(tiles_, rows(layer.scaled, message_size), rows_to(layer.contracted_in, message_size), false, stream_);
        }
        const int contracted_size = plan.contraction.out_size(), features_size = plan.features_layout.size;
        resize(contracted_, atom_count(), contracted_size);
        layer.contraction.apply(tiles_, rows(contraction_input(layer), message_size), rows_to(contracted_, contracted_size), stream_);
        resize(layer.features, atom_count(), features_size);
        layer.linear.apply(tiles_, rows(contracted_, contracted_size), rows_to(layer.features, features_size), false, stream_);
        if (layer.skip) layer.skip->apply(tiles_, features_below(index), rows_to(layer.features, features_size), true, stream_);
        if (index + 1 == layers_.size()) return;
        DeviceLayer<Real>& next = *layers_[index + 1];
        const int sender_size = next.plan.sender_layout.size;
        resize(next.senders, atom_count(), sender_size);
        next.up.apply(tiles_, rows(layer.features, features_size), rows_to(next.senders, sender_size), false, stream_);
    }

    // Messages of the first layer by way of moments, for some elements of the senders at a time: action(elements, is_first)
    template <class Action>
    void for_senders_of_moments(const DeviceLayer<Real>& layer, const Action& action) {
        constexpr size_t kAtOnce = DeviceMoments<Real>::kMostSenders;
        resize(moments_, atom_count() * static_cast<int64_t>(std::min(kAtOnce, elements_present_.size())), layer.plan.moments->layout().size);
        const std::span<const int> all = elements_present_;
        for (size_t i = 0; i < all.size(); i += kAtOnce) action(all.subspan(i, std::min(kAtOnce, all.size() - i)), i == 0);
    }
    // Those of the elements' number `index`.
    RowsView<Real> moment_rows(const DeviceLayer<Real>& layer, size_t index) {
        const int size = layer.plan.moments->layout().size;
        return {moments_.data() + static_cast<int64_t>(index) * atom_count() * size, size, nullptr};
    }
    void compute_moments(DeviceLayer<Real>& layer) {
        for_senders_of_moments(layer, [&](std::span<const int> elements, bool is_first) {
            layer.moments->compute(edges_, elements, moments_.data(), is_first ? layer.densities.data() : nullptr, stream_);
            for (size_t i = 0; i < elements.size(); ++i) {
                const RowsView<Real> moments = moment_rows(layer, i);
                layer.moment_maps.at(elements[i]).apply(tiles_, {moments.first, moments.size, nullptr}, rows_to(layer.scaled, layer.plan.linear_layout.size),
                                                        !is_first || i > 0, stream_);
            }
        });
    }
    void reverse_moments(DeviceLayer<Real>& layer, const DeviceBuffer<Real>& gradient, bool accumulate) {
        for_senders_of_moments(layer, [&](std::span<const int> elements, bool) {
            for (size_t i = 0; i < elements.size(); ++i)
                layer.moment_maps.at(elements[i]).apply_transposed(tiles_, rows(gradient, layer.plan.linear_layout.size), moment_rows(layer, i), false, stream_);
            layer.moments->reverse(edges_, elements, moments_.data(), densities_gradient_.data(), {harmonics_gradient_.data(), distance_gradient_.data()}, accumulate, stream_);
        });
    }

    // Messages as they are where nothing comes between, else what became of them.
    static const DeviceBuffer<Real>& contraction_input(const DeviceLayer<Real>& layer) { return layer.gate || layer.message_skip ? layer.contracted_in : layer.scaled; }

    void compute_energies() {
        resize(energies_, atom_count(), 1);
        compute_repulsion(edges_, repulsion_, energies_.data(), stream_);
        for (size_t i = 0; i < readouts_.size(); ++i)
            readouts_[i]->compute(atom_count(), layers_[static_cast<size_t>(weights_->readouts[i].layer)]->features.data(), energies_.data(), stream_);
    }

    void write_energies(const Outputs& outputs) {
        double sum = 0;
        for (int32_t element : elements_)
            sum += reference::embedding_energy(*weights_, options_.head, element, embedding_.data() + static_cast<size_t>(element) * static_cast<size_t>(weights_->channel_count));
        for (size_t atom = 0; atom < elements_.size(); ++atom) {
            const double energy = reference::atom_energy(*weights_, options_.head, elements_[atom], host_energies_.data()[atom]);
            if (outputs.atom_energies) outputs.atom_energies[atom] = energy;
            sum += energy;
        }
        if (outputs.energy) *outputs.energy = sum;
    }

    void write_descriptors(const Outputs& outputs) {
        if (!outputs.descriptors) return;
        const int width = weights_->descriptor_count();
        int column = 0;
        for (const auto& layer : layers_) {
            const cpu::RowLayout& layout = layer->plan.features_layout;
            std::vector<Real> features(static_cast<size_t>(atom_count() * layout.size));
            layer->features.download(features.data(), static_cast<int64_t>(features.size()), stream_);
            check(cudaStreamSynchronize(stream_), "the descriptors");
            for (size_t b = 0; b < layout.blocks.size(); ++b) {
                if (!layer->plan.layer.linear.out[static_cast<int>(b)].irrep.is_scalar()) continue;
                for (int64_t atom = 0; atom < atom_count(); ++atom)
                    std::copy_n(features.data() + atom * layout.size + layout.blocks[b].offset, layout.blocks[b].copies, outputs.descriptors + atom * width + column);
                column += layout.blocks[b].copies;
            }
        }
    }

    // ---- reverse ----

    void start_gradients() {
        for (auto& layer : layers_) {
            resize(layer->features_gradient, atom_count(), layer->plan.features_layout.size);
            layer->features_gradient.clear(stream_);
        }
    }

    void reverse_layer(size_t index) {
        DeviceLayer<Real>& layer = *layers_[index];
        const cpu::LayerPlan<Real>& plan = layer.plan;
        const int linear_size = plan.linear_layout.size, message_size = plan.message_layout.size, features_size = plan.features_layout.size;
        const double scale = weights_->scale[static_cast<size_t>(options_.head)];
        for (size_t i = 0; i < readouts_.size(); ++i)
            if (static_cast<size_t>(weights_->readouts[i].layer) == index)
                readouts_[i]->reverse(atom_count(), layer.features.data(), scale, layer.features_gradient.data(), stream_);
        const RowsView<const Real> features_gradient = rows(layer.features_gradient, features_size);
        if (layer.skip && index > 0) layer.skip->apply_transposed(tiles_, features_gradient, gradient_below(index), true, stream_);
        const int contracted_size = plan.contraction.out_size();
        resize(contracted_, atom_count(), contracted_size);
        layer.linear.apply_transposed(tiles_, features_gradient, rows_to(contracted_, contracted_size), false, stream_);
        resize(work_, atom_count(), std::max(message_size, linear_size));
        layer.contraction.reverse(tiles_, rows(contraction_input(layer), message_size), rows(contracted_, contracted_size), rows_to(work_, message_size), stream_);
        // work_ has the gradient of what the contraction took. With densities and no gate, its product with that is the product below.
        const Real *dot_a = work_.data(), *dot_b = contraction_input(layer).data();
        DeviceBuffer<Real>* gradient = &work_;
        if (layer.message_skip) {
            resize(more_work_, atom_count(), message_size);
            layer.message_skip->apply_transposed(tiles_, rows(work_, message_size), rows_to(more_work_, message_size), false, stream_);
            gradient = &more_work_;
        }
        if (layer.gate) {
            const int gated_size = plan.gate->out_layout.size, sender_size = plan.sender_layout.size;
            resize(gated_, atom_count(), gated_size);
            layer.after->apply_transposed(tiles_, rows(*gradient, message_size), rows_to(gated_, gated_size), false, stream_);
            resize(more_work_, atom_count(), linear_size);
            layer.gate->reverse(atom_count(), layer.gate_inputs.data(), gated_.data(), more_work_.data(), stream_);
            gradient = &more_work_;
            dot_a = more_work_.data();
            dot_b = layer.scaled.data();
            resize(senders_gradient_, atom_count(), sender_size);
            if (index > 0) layer.residual->apply_transposed(tiles_, rows(*gradient, linear_size), rows_to(senders_gradient_, sender_size), false, stream_);
        }
        resize(densities_gradient_, atom_count(), 1);
        const auto by_density = static_cast<Real>(plan.columns.density >= 0 ? plan.layer.interaction.divisor_density : 0);
        reverse_division(atom_count(), by_density, dot_a, dot_b, layer.gate ? linear_size : message_size, layer.divisors.data(), densities_gradient_.data(),
                         gradient->data(), linear_size, stream_);
        if (plan.moments) return reverse_moments(layer, *gradient, index + 1 < layers_.size());
        resize(sums_, atom_count(), plan.sums_layout.size);
        layer.message.apply_transposed(tiles_, rows(*gradient, linear_size), rows_to(sums_, plan.sums_layout.size), false, stream_);
        reverse_messages_of(index);
    }

    void reverse_messages_of(size_t index) {
        DeviceLayer<Real>& layer = *layers_[index];
        const int sender_size = layer.plan.sender_layout.size;
        const EdgeGradientsView<Real> gradients = {harmonics_gradient_.data(), distance_gradient_.data()};
        if (index > 0 && !layer.gate) {
            resize(senders_gradient_, atom_count(), sender_size);
            senders_gradient_.clear(stream_);
        }
        Real* senders_gradient = index > 0 ? senders_gradient_.data() : nullptr;
        const bool accumulate = index + 1 < layers_.size();
        if (layer.fused)
            layer.fused->reverse(edges_, geometry_.reverse, sender_rows(index), sums_.data(), densities_gradient_.data(), gradients, accumulate, senders_gradient,
                                 message_scratch(), stream_);
        else
            layer.messages->reverse(edges_, sender_rows(index), sums_.data(), densities_gradient_.data(), gradients, accumulate, senders_gradient, stream_);
        if (index > 0) layer.up.apply_transposed(tiles_, rows(senders_gradient_, sender_size), gradient_below(index), true, stream_);
    }

    typename FusedMessages<Real>::Scratch message_scratch() const { return {message_scratch_.data(), message_scratch_.size(), edge_capacity_}; }
    // Room for the edges of fused messages, all at once or, in larger systems, a chunk at a time.
    int64_t message_scratch_bytes(int64_t atoms, int64_t edge_capacity) const {
        constexpr int64_t kLeast = 512 << 20, kForEachAtom = 32 << 10;
        int64_t bytes_per_edge = 0;
        for (const auto& layer : layers_)
            if (layer->fused) bytes_per_edge = std::max(bytes_per_edge, layer->fused->scratch_bytes_per_edge(true));
        return std::min(bytes_per_edge * (edge_capacity + kEdgesPerTile), std::max(kLeast, kForEachAtom * atoms));
    }

    void compute_forces() {
        reverse_edges(edges_, geometry_, {harmonics_gradient_.data(), distance_gradient_.data()}, repulsion_, vector_gradient_.data(), stream_);
        resize(forces_, atom_count(), 3);
        resize(virials_, atom_count(), 9);
        resize(virial_, 1, 9);
        gather_forces(edges_, geometry_, vector_gradient_.data(), forces_.data(), virials_.data(), stream_);
        sum_virials(virials_.data(), atom_count(), virial_.data(), stream_);
        forces_.download(host_forces_.data(), 3 * atom_count(), stream_);
        virials_.download(host_virials_.data(), 9 * atom_count(), stream_);
        virial_.download(host_virial_.data(), 9, stream_);
    }

    std::shared_ptr<const Weights> weights_;
    CudaOptions options_;
    std::optional<CurrentDevice> current_;  // first and last of the members, while they are made and given back
    Stream stream_;
    GpuNeighborList<double> neighbors_;
    cpu::RowLayout first_layout_;
    std::vector<std::unique_ptr<cpu::LayerPlan<Real>>> plans_;
    std::vector<std::unique_ptr<DeviceLayer<Real>>> layers_;
    std::vector<std::unique_ptr<DeviceReadout<Real>>> readouts_;
    RepulsionView repulsion_;
    DeviceBuffer<double> radii_, atomic_numbers_;

    bool is_sorted_ = false;
    std::vector<int32_t> elements_;  // [atom]
    std::vector<int> elements_present_;
    DeviceBuffer<int32_t> order_, device_elements_;
    DeviceBuffer<Tile> tiles_buffer_;
    TilesView tiles_;

    EdgesView<Real> edges_;
    EdgeGeometry geometry_;
    DeviceBuffer<double> positions_, distance_gradient_, vector_gradient_;
    DeviceBuffer<Real> harmonics_, harmonics_gradient_;
    DeviceBuffer<unsigned char> message_scratch_;
    int64_t edge_capacity_ = 0;
    DeviceBuffer<int> short_edges_;
    mlff::cuda::PinnedBuffer<int> host_flag_;
    mlff::cuda::PinnedBuffer<double> host_positions_, host_energies_, host_forces_, host_virials_, host_virial_;

    std::vector<double> embedding_;  // [element][channel_count]
    DeviceBuffer<Real> first_features_;  // [element][first_layout_.size]
    DeviceBuffer<Real> sums_, moments_, contracted_, work_, more_work_, gated_, senders_gradient_, densities_gradient_;
    DeviceBuffer<double> energies_, forces_, virials_, virial_;
    bool has_first_features_ = false;
    double charge_ = 0, spin_ = 0;  // that they were made for

    int64_t atoms_version_ = 0, growth_count_ = 0;
    StepKey last_key_, graph_key_;
    std::optional<Graph> graph_;
};

}  // namespace

std::string why_not_on_gpu(const Weights& weights) {
    constexpr size_t kMostShared = 80 << 10;  // that every GPU from compute capability 8.0 on has for a block
    for (const Layer& layer : weights.layers) {
        const Interaction& interaction = layer.interaction;
        if (interaction.edge_input == Interaction::EdgeInput::features) return "its radial weights depend on the features of both atoms";
        if (interaction.gated && interaction.message_skip) return "it has a gate and a map by element after it";
        for (const IrrepBlock& block : interaction.convolution.in.blocks())
            if (kWarps * sizeof(double) * static_cast<size_t>(cpu::padded(block.multiplicity) * block.irrep.dimension()) > kMostShared)
                return "its features are too wide for the GPU's kernels";
        if (2 * kBlockThreads * sizeof(double) * static_cast<size_t>(layer.contraction.in_row_count) > kMostShared) return "its messages are too wide for the GPU's kernels";
    }
    for (const Readout& readout : weights.readouts)
        if (readout.last && readout.first.out.dimension() + (readout.middle ? readout.middle->out.dimension() : 0) > DeviceReadout<double>::kMostHidden)
            return "its readouts are too wide for the GPU's kernels";
    return cpu::why_not_on_cpu(weights);
}

std::unique_ptr<Evaluator> make_cuda_evaluator(std::shared_ptr<const Weights> weights, const CudaOptions& options) {
    const std::string why_not = why_not_on_gpu(*weights);
    if (!why_not.empty()) fail(Status::unsupported, "the GPU backend cannot run this model: ", why_not);
    if (options.is_single) return std::make_unique<CudaEvaluator<float>>(std::move(weights), options);
    return std::make_unique<CudaEvaluator<double>>(std::move(weights), options);
}

}  // namespace mlff::mace::cuda
