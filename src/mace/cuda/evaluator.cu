// SPDX-License-Identifier: MIT
#include "mace/cuda/evaluator.h"

#include <algorithm>
#include <bitset>
#include <optional>
#include <span>
#include <unordered_set>

#include "core/elements.h"
#include "core/error.h"
#include "device/cuda_check.h"
#include "device/cuda_stream.h"
#include "device/device_buffer.h"
#include "mace/cpu/layer_plan.h"
#include "mace/cuda/atom_set.h"
#include "mace/cuda/atoms.h"
#include "mace/cuda/buffer_list.h"
#include "mace/cuda/device_layer.h"
#include "mace/cuda/edges.h"
#include "mace/cuda/first_features.h"
#include "mace/cuda/memory_need.h"
#include "mace/cuda/step_graphs.h"
#include "mace/cuda/step_results.h"
#include "mace/cuda/uploaded_edges.h"
#include "mace/spherical_harmonics.h"
#include "neighbors/cell_grid.h"
#include "neighbors/gpu/gpu_neighbor_list.h"

namespace mlff::mace::cuda {
namespace {

using mlff::cuda::check;
using mlff::cuda::CurrentDevice;
using mlff::cuda::DeviceBuffer;

// So much more than needed is taken, for systems that grow a little.
constexpr double kSpare = 1.125;
int64_t spared(int64_t count) { return count + count / 8; }

// Systems up to this size are evaluated together, until so many atoms are.
constexpr int64_t kMostAtomsOfJoined = 1024, kMostJoinedAtoms = 16384;

using ElementSet = std::bitset<kMaxAtomicNumber>;

template <class Real>
class CudaEvaluator : public Evaluator {
public:
    CudaEvaluator(std::shared_ptr<const Weights> weights, const CudaOptions& options)
        : weights_(std::move(weights)), options_(options), current_(options.device), neighbors_(neighbor_options()), results_(weights_->descriptor_count()) {
        const int element_count = weights_->element_count();
        int most_shared = 0;
        check(cudaDeviceGetAttribute(&most_shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, options.device), "asking for the device");
        size_t free_memory = 0, total_memory = 0;
        check(cudaMemGetInfo(&free_memory, &total_memory), "asking for free memory");
        total_memory_ = static_cast<int64_t>(total_memory);
        Irreps scalars;
        scalars.append(weights_->channel_count, Irrep{});
        first_layout_ = cpu::RowLayout(scalars);
        const cpu::RowLayout* below = &first_layout_;
        for (const Layer& layer : weights_->layers) {
            const MessageOptions messages = {kCanFuse<Real> && FusedMessages::can_run(layer.interaction, static_cast<size_t>(most_shared)), options.is_fast, static_cast<size_t>(most_shared)};
            plans_.push_back(std::make_unique<cpu::LayerPlan<Real>>(*weights_, layer, *below, cpu::LayerOptions{.hidden_radial = messages.are_fused}));
            layers_.push_back(std::make_unique<DeviceLayer<Real>>(*plans_.back(), *below, harmonic_count(weights_->max_degree), element_count, messages, stream_));
            below = &plans_.back()->features_layout;
        }
        for (const Readout& readout : weights_->readouts) {
            const cpu::LayerPlan<Real>& plan = *plans_[static_cast<size_t>(readout.layer)];
            readouts_.push_back(std::make_unique<DeviceReadout<Real>>(readout, options.head, plan.layer.linear.out, plan.features_layout, stream_));
        }
        if (weights_->repulsion) upload_repulsion();
        neighbors_.set_admission([this](int64_t candidate_count, const GpuNeighborMemory& memory) {
            pending_.edges = candidate_count;
            admit(pending_, memory);
        });
        current_.reset();
    }
    ~CudaEvaluator() override { current_.emplace(options_.device, std::nothrow); }  // memory is given back where it was taken

    bool needs_edges() const override { return false; }
    int64_t neighbor_build_count() const override { return neighbors_.build_count(); }

    void evaluate(const SystemView& system, const Edges&, const Outputs& outputs, ThreadTeam& team) override {
        const CurrentDevice current(options_.device);
        leave_nothing_running([&] {
            compute(system, wanted_of({&outputs, 1}), true, team);
            results_.write({&system, 1}, {&outputs, 1});
        });
    }

    void evaluate_on_device(const SystemView& system, const DeviceOutputs& outputs, void* stream, ThreadTeam& team) override {
        const CurrentDevice current(options_.device);
        require_on_device(system, outputs);
        leave_nothing_running([&] {
            order_.follow(static_cast<cudaStream_t>(stream), stream_);
            Wanted wanted = wanted_of({&outputs.outputs, 1});
            wanted.virial |= outputs.stress != nullptr;
            compute(system, wanted, false, team);
            results_.copy(system.atom_count, outputs, stream_);
            check(cudaStreamSynchronize(stream_), "copying the results");
        });
    }

    // Charge and spin change the first features of all atoms alike, which are kept by element. Larger systems keep the GPU busy alone, and it finds
    // their neighbours faster than the host.
    bool can_join(const SystemView& first, const SystemView& next) const override {
        return std::max(first.atom_count, next.atom_count) <= kMostAtomsOfJoined &&
               (!weights_->joint_embedding || (first.total_charge == next.total_charge && first.spin_multiplicity == next.spin_multiplicity));
    }
    int64_t most_joined_atoms() const override { return kMostJoinedAtoms; }
    bool needs_reverse_of_joined() const override { return true; }

    void evaluate_joined(std::span<const SystemView> systems, const Edges& edges, std::span<const Outputs> outputs, ThreadTeam& team) override {
        const CurrentDevice current(options_.device);
        leave_nothing_running([&] {
            pending_ = {edges.atom_count, edges.edge_count, static_cast<int64_t>(systems.size()), wanted_of(outputs), true, true};
            set_atoms(systems);
            prepare_elements(team);
            update_first_features(systems.front());
            reserve_step(pending_);
            uploaded_.upload(edges, stream_);
            set_edges(pending_.edges, uploaded_.first(), uploaded_.sender(), uploaded_.distance(), {uploaded_.vector(), uploaded_.reverse(), weights_->max_degree});
            run_step({false, pending_});
            check_distances();
            results_.write(systems, outputs);
        });
    }

private:
    void require_on_device(const SystemView& system, const DeviceOutputs& outputs) const {
        const Outputs& to = outputs.outputs;
        const auto require = [&](const double* pointer, const char* name) { mlff::cuda::require_on_device(pointer, options_.device, name); };
        require(to.energy, "energy");
        require(to.virial, "virial");
        require(outputs.stress, "stress");
        if (system.atom_count == 0) return;
        require(system.positions, "positions");
        require(to.forces, "forces");
        require(to.atom_energies, "atom_energies");
        require(to.atom_virials, "atom_virials");
        require(to.descriptors, "descriptors");
    }

    // ---- the step: from positions to results, as one CUDA graph once its sizes and addresses have settled ----

    struct StepKind {
        bool reuses_candidates = false;  // else the edges are there
        StepSize size;
    };
    struct StepKey {
        bool reuses_candidates = false, is_host = true;
        int64_t generation = 0;  // of the candidates
        Wanted wanted;
        EdgesView<Real> edges;
        EdgeGeometry geometry;
        TilesView tiles;
        SystemsView systems;
        ElementSet elements;
        int64_t edge_capacity = 0;

        bool operator==(const StepKey&) const = default;
    };

    // Buffers may be freed or written to by the next call: an error must not leave work behind that uses them.
    template <class Work>
    void leave_nothing_running(const Work& work) {
        try {
            work();
        } catch (...) {
            cudaStreamSynchronize(stream_);
            throw;
        }
    }

    // `is_host`: positions are on the host, and results are wanted there.
    void compute(const SystemView& system, const Wanted& wanted, bool is_host, ThreadTeam& team) {
        pending_ = {system.atom_count, 0, 1, wanted, is_host};
        set_atoms({&system, 1});
        prepare_elements(team);
        update_first_features(system);
        take_positions(system, is_host);
        StepKind kind = {true, pending_};
        if (neighbors_.can_reuse(system)) {
            use_neighbors(kind.size);
            run_step(kind);
            if (!results_.is_search_needed()) return check_distances();
        }
        if (is_host) upload_positions();
        SystemView on_device = system;
        on_device.positions = positions_.data();
        neighbors_.search(on_device, static_cast<cudaStream_t>(stream_));
        use_neighbors(kind.size);
        kind.reuses_candidates = false;
        run_step(kind);
        check_distances();
    }

    // Waits for the results.
    void run_step(const StepKind& kind) {
        const StepKey key = {kind.reuses_candidates, kind.size.to_host, kind.reuses_candidates ? neighbors_.generation() : 0, kind.size.wanted, edges_, geometry_, tiles_,
                             atoms_.systems(), element_set_, edge_capacity_};
        graphs_.run(key, stream_, [&] { enqueue_step(kind); });
        check(cudaStreamSynchronize(stream_), "the evaluation");
    }

    void enqueue_step(const StepKind& kind) {
        const Wanted& wanted = kind.size.wanted;
        if (kind.reuses_candidates) {
            if (kind.size.to_host) upload_positions();
            neighbors_.enqueue_reuse(positions_.data(), static_cast<cudaStream_t>(stream_));
        }
        resize(results_.short_edges, 1, 1);
        results_.short_edges.clear(stream_);
        find_short_edges(edges_, cpu::lowest_distance(weights_->radial), results_.short_edges.data(), stream_);
        compute_harmonics(edges_, geometry_, harmonics_.data(), stream_);
        for (size_t i = 0; i < layers_.size(); ++i) compute_layer(i);
        compute_energies();
        if (wanted.gradients()) {
            start_gradients();
            for (size_t i = layers_.size(); i-- > 0;) reverse_layer(i);
            compute_forces(wanted);
        }
        if (wanted.descriptors) compute_descriptors();
        sum_over_systems(atoms_.systems(), energy_view(), results_.energies.data(), wanted.virials() ? results_.virials.data() : nullptr, results_.partial.data(),
                         results_.totals.data(), stream_);
        results_.download(kind.size, kind.reuses_candidates ? neighbors_.edges().report : nullptr, stream_);
    }

    void check_distances() const {
        if (!results_.has_short_edge()) return;
        if (cpu::lowest_distance(weights_->radial) == 0) fail(Status::system, "two atoms are at the same place");
        fail(Status::system, "two atoms are not more than ", cpu::lowest_distance(weights_->radial),
             " angstrom apart, where the GPU's tables of radial functions end; --device cpu can evaluate this");
    }

    // ---- memory: all that grows with the system is listed here, and taken before a step; kernels are given what is there ----

    void list_atom_buffers(BufferList& list, int64_t atom_count, int64_t system_count) {
        list.add(positions_, 3 * atom_count, "the atoms");
        atoms_.list_buffers(list, atom_count, system_count, weights_->element_count());
    }

    void list_step_buffers(BufferList& list, const StepSize& size) {
        constexpr const char *kAtoms = "the features of the atoms", *kEdges = "the edges";
        const int64_t atoms = size.atoms, edges = size.edges, harmonics = harmonic_count(weights_->max_degree);
        const bool has_gradients = size.wanted.gradients();
        results_.list_buffers(list, size);
        if (size.has_host_edges) uploaded_.list_buffers(list, atoms, edges);
        list.add(harmonics_, edges * harmonics, kEdges);
        list.add(message_scratch_, message_scratch_bytes(atoms, edges, has_gradients), kEdges);
        if (has_gradients) {
            list.add(harmonics_gradient_, edges * harmonics, kEdges);
            list.add(distance_gradient_, edges, kEdges);
            list.add(vector_gradient_, 3 * edges, kEdges);
            list.add(densities_gradient_, atoms, kAtoms);
        }
        for (size_t i = 0; i < layers_.size(); ++i) {
            DeviceLayer<Real>& layer = *layers_[i];
            const cpu::LayerPlan<Real>& plan = layer.plan;
            const int64_t linear_size = plan.linear_layout.size, message_size = plan.message_layout.size, sender_size = plan.sender_layout.size;
            if (layer.edge_network) layer.edge_network->list_buffers(list, atoms, edges, has_gradients);
            list.add(layer.densities, atoms, kAtoms);
            list.add(layer.divisors, atoms, kAtoms);
            list.add(layer.scaled, atoms * linear_size, kAtoms);
            if (plan.moments)
                list.add(moments_, atoms * senders_of_moments_at_once() * plan.moments->layout().size, kAtoms);
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

    // Room for the edges of fused messages: all of them or, in larger systems or with little memory, a chunk at a time.
    int64_t message_scratch_bytes(int64_t atoms, int64_t edges, bool has_gradients) const {
        constexpr int64_t kEnough = 512 << 20, kForEachAtom = 32 << 10, kLeast = 16 << 20;
        int64_t bytes_per_edge = 0;
        for (const auto& layer : layers_)
            if (layer->fused) bytes_per_edge = std::max(bytes_per_edge, layer->fused->scratch_bytes_per_edge(has_gradients));
        const int64_t share = options_.message_scratch_bytes > 0 ? options_.message_scratch_bytes
                                                                 : std::max(kLeast, (options_.memory_limit_bytes > 0 ? options_.memory_limit_bytes : total_memory_) / 8);
        return std::min({bytes_per_edge * (edges + kEdgesPerTile), std::max(kEnough, kForEachAtom * atoms), share});
    }
    FusedMessages::Scratch message_scratch() const {
        return {message_scratch_.data(), std::min(message_scratch_.capacity(), message_scratch_bytes(atom_count(), edge_capacity_, true)), edge_capacity_};
    }

    // Throws Error{memory} if there is no room for a step of this size beside the neighbour list.
    void admit(const StepSize& size, const GpuNeighborMemory& neighbors) {
        BufferList step, atoms;
        list_step_buffers(step, size);
        list_atom_buffers(atoms, size.atoms, size.systems);
        if (step.is_reserved() && atoms.is_reserved() && neighbors.needed_bytes == neighbors.held_bytes) return;
        const int64_t others = atoms.bytes_afterwards() + neighbors.needed_bytes;
        const MemoryThere there = memory_there(step.held_bytes() + atoms.held_bytes() + neighbors.held_bytes);
        check_memory({size.atoms, size.edges, step.needed_bytes() + others}, there);
        if (step.bytes_afterwards() + others <= there.bytes) return;
        graphs_.clear();  // it fits without what was taken for steps of another shape
        reserved_.reset();
        step.release();
    }
    MemoryThere memory_there(int64_t held_bytes) const {
        size_t free_bytes = 0, total_bytes = 0;
        check(cudaMemGetInfo(&free_bytes, &total_bytes), "asking for free memory");
        const size_t slack_bytes = std::min<size_t>(free_bytes / 32, 256 << 20);  // allocations are rounded up, and graphs need a little
        const int64_t there = static_cast<int64_t>(free_bytes - slack_bytes) + held_bytes, limit = options_.memory_limit_bytes;
        if (limit > 0 && limit < there) return {limit, true};
        return {there, false};
    }

    void reserve_atoms(int64_t atom_count, int64_t system_count) {
        BufferList list;
        list_atom_buffers(list, atom_count, system_count);
        if (!list.is_reserved()) graphs_.clear();  // in which addresses are baked
        list.reserve(kSpare);
        if (3 * atom_count <= host_positions_.capacity()) return;
        graphs_.clear();
        host_positions_.resize_discard(spared(3 * atom_count));
    }
    void reserve_step(const StepSize& size) {
        if (reserved_ && reserved_->covers(size)) return;
        const int64_t neighbor_bytes = neighbors_.held_bytes();
        admit(size, {neighbor_bytes, neighbor_bytes});
        reserved_.reset();
        BufferList list;
        list_step_buffers(list, size);
        if (!list.is_reserved()) {
            graphs_.clear();
            const bool has_room = static_cast<double>(list.needed_bytes()) * kSpare + static_cast<double>(neighbor_bytes) <=
                                  static_cast<double>(memory_there(list.held_bytes() + neighbor_bytes).bytes);
            list.reserve(has_room ? kSpare : 1.0);
        }
        if (results_.reserve_host(size)) graphs_.clear();
        reserved_ = size;
    }

    // Kernels' scratch has the room that list_step_buffers() asked for.
    template <class T>
    static void resize(DeviceBuffer<T>& buffer, int64_t rows, int64_t size, const char* purpose = "the features of the atoms") {
        if (rows * size > buffer.capacity()) fail(Status::internal, "memory for ", purpose, " is not in the list of buffers");
        buffer.resize_discard(rows * size, purpose);
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

    // Done again only when the atoms are others than before.
    void set_atoms(std::span<const SystemView> systems) {
        if (atoms_.holds(systems)) return;
        atoms_.forget();
        int64_t atom_count = 0;
        for (const SystemView& system : systems) atom_count += system.atom_count;
        check_atom_count(atom_count);
        admit(pending_, {neighbors_.held_bytes(), neighbors_.held_bytes()});
        reserve_atoms(atom_count, static_cast<int64_t>(systems.size()));
        atoms_.set(systems, *weights_, stream_);
        tiles_ = atoms_.tiles();
        if (atoms_.elements_present().size() > elements_present_.size()) reserved_.reset();  // room for moments of each
        elements_present_ = atoms_.elements_present();
        element_set_.reset();
        for (int z : elements_present_) element_set_.set(static_cast<size_t>(z));
    }

    // Tables of the pairs of elements that are there.
    void prepare_elements(ThreadTeam& team) {
        if (prepared_.contains(element_set_)) return;
        graphs_.clear();
        for (size_t i = 0; i < layers_.size(); ++i) {
            plans_[i]->prepare(elements_present_, team);
            layers_[i]->prepare(elements_present_, team, stream_);
        }
        prepared_.insert(element_set_);
    }

    void update_first_features(const SystemView& system) {
        first_.update(*weights_, options_.head, system, first_layout_, plans_.front()->sender_layout, stream_);
    }

    void take_positions(const SystemView& system, bool is_host) {
        const int64_t count = 3 * system.atom_count;
        if (is_host)
            std::copy_n(system.positions, count, host_positions_.data());
        else if (count > 0)
            check(cudaMemcpyAsync(positions_.data(), system.positions, static_cast<size_t>(count) * sizeof(double), cudaMemcpyDeviceToDevice, stream_), "copying positions");
    }
    void upload_positions() {
        const int64_t count = 3 * atoms_.atom_count();
        if (count > 0) check(cudaMemcpyAsync(positions_.data(), host_positions_.data(), static_cast<size_t>(count) * sizeof(double), cudaMemcpyHostToDevice, stream_), "copying positions");
    }

    // Takes the edges of the neighbour list, for which room is made.
    void use_neighbors(StepSize& size) {
        const GpuEdges<double>& found = neighbors_.edges();
        size.edges = found.edge_capacity;
        reserve_step(size);
        set_edges(found.edge_capacity, found.first, found.sender, found.distance, {found.vector, found.reverse, weights_->max_degree});
    }
    void set_edges(int64_t capacity, const int64_t* first, const int32_t* sender, const double* distance, const EdgeGeometry& geometry) {
        edge_capacity_ = capacity;
        edges_ = {static_cast<int32_t>(atoms_.atom_count()), first, sender, distance, atoms_.elements(), harmonics_.data(), harmonic_count(weights_->max_degree)};
        geometry_ = geometry;
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
        if (layer == 0) return {first_.senders().data(), size, atoms_.elements()};
        return rows(layers_[layer]->senders, size);
    }
    RowsView<const Real> features_below(size_t layer) const {
        if (layer == 0) return {first_.features().data(), first_layout_.size, atoms_.elements()};
        return rows(layers_[layer - 1]->features, plans_[layer - 1]->features_layout.size);
    }
    RowsView<Real> gradient_below(size_t layer) { return rows_to(layers_[layer - 1]->features_gradient, plans_[layer - 1]->features_layout.size); }

    // ---- forward ----

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
            EdgeWeights<Real> weights;
            if (layer.edge_network) weights = layer.edge_network->compute(edges_, geometry_, edge_capacity_, tiles_, features_below(index), stream_);
            if (layer.messages) layer.messages->compute(edges_, weights, sender_rows(index), sums_.data(), layer.densities.data(), stream_);
            if constexpr (kCanFuse<Real>)
                if (layer.fused) layer.fused->compute(edges_, sender_rows(index), sums_.data(), layer.densities.data(), message_scratch(), stream_);
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

    int64_t senders_of_moments_at_once() const { return static_cast<int64_t>(std::min<size_t>(DeviceMoments<Real>::kMostSenders, elements_present_.size())); }
    // Messages of the first layer by way of moments, for some elements of the senders at a time: action(elements, is_first)
    template <class Action>
    void for_senders_of_moments(const DeviceLayer<Real>& layer, const Action& action) {
        constexpr size_t kAtOnce = DeviceMoments<Real>::kMostSenders;
        resize(moments_, atom_count() * senders_of_moments_at_once(), layer.plan.moments->layout().size);
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
        double* energies = results_.energies.data();
        compute_repulsion(edges_, repulsion_, energies, stream_);
        for (size_t i = 0; i < readouts_.size(); ++i)
            readouts_[i]->compute(atom_count(), layers_[static_cast<size_t>(weights_->readouts[i].layer)]->features.data(), energies, stream_);
        finish_energies(atom_count(), energy_view(), energies, stream_);
    }
    EnergyView energy_view() const {
        const auto head = static_cast<size_t>(options_.head);
        return {atoms_.elements(), first_.energies(), weights_->scale[head], weights_->shift[head]};
    }

    void compute_descriptors() {
        const int width = weights_->descriptor_count();
        int column = 0;
        for (const auto& layer : layers_) {
            const cpu::RowLayout& layout = layer->plan.features_layout;
            for (size_t b = 0; b < layout.blocks.size(); ++b) {
                if (!layer->plan.layer.linear.out[static_cast<int>(b)].irrep.is_scalar()) continue;
                copy_columns(atom_count(), layout.blocks[b].copies, layer->features.data() + layout.blocks[b].offset, layout.size, results_.descriptors.data() + column, width,
                             stream_);
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
        EdgeWeights<Real> weights;
        if (layer.edge_network) weights = layer.edge_network->start_gradient(geometry_, edge_capacity_, stream_);
        if (layer.messages)
            layer.messages->reverse(edges_, weights, sender_rows(index), sums_.data(), densities_gradient_.data(), gradients, accumulate, senders_gradient, stream_);
        if (layer.edge_network)
            layer.edge_network->reverse(edges_, geometry_, edge_capacity_, tiles_, distance_gradient_.data(), index > 0 ? gradient_below(index) : RowsView<Real>{}, stream_);
        if constexpr (kCanFuse<Real>)
            if (layer.fused)
                layer.fused->reverse(edges_, geometry_.reverse, sender_rows(index), sums_.data(), densities_gradient_.data(), gradients, accumulate, senders_gradient,
                                     message_scratch(), stream_);
        if (index > 0) layer.up.apply_transposed(tiles_, rows(senders_gradient_, sender_size), gradient_below(index), true, stream_);
    }

    void compute_forces(const Wanted& wanted) {
        reverse_edges(edges_, geometry_, {harmonics_gradient_.data(), distance_gradient_.data()}, repulsion_, vector_gradient_.data(), stream_);
        gather_forces(edges_, geometry_, vector_gradient_.data(), wanted.forces ? results_.forces.data() : nullptr, wanted.virials() ? results_.virials.data() : nullptr,
                      stream_);
    }

    std::shared_ptr<const Weights> weights_;
    CudaOptions options_;
    std::optional<CurrentDevice> current_;  // first and last of the members, while they are made and given back
    mlff::cuda::Stream stream_;
    mlff::cuda::StreamOrder order_;
    GpuNeighborList<double> neighbors_;
    cpu::RowLayout first_layout_;
    std::vector<std::unique_ptr<cpu::LayerPlan<Real>>> plans_;
    std::vector<std::unique_ptr<DeviceLayer<Real>>> layers_;
    std::vector<std::unique_ptr<DeviceReadout<Real>>> readouts_;
    RepulsionView repulsion_;
    DeviceBuffer<double> radii_, atomic_numbers_;

    AtomSet atoms_;
    TilesView tiles_;
    std::vector<int> elements_present_;
    ElementSet element_set_;
    std::unordered_set<ElementSet> prepared_;
    DeviceBuffer<double> positions_;
    mlff::cuda::PinnedBuffer<double> host_positions_;

    UploadedEdges uploaded_;  // of joined systems
    EdgesView<Real> edges_;
    EdgeGeometry geometry_;
    DeviceBuffer<double> distance_gradient_, vector_gradient_;
    DeviceBuffer<Real> harmonics_, harmonics_gradient_;
    DeviceBuffer<unsigned char> message_scratch_;
    int64_t edge_capacity_ = 0, total_memory_ = 0;

    FirstFeatures<Real> first_;
    DeviceBuffer<Real> sums_, moments_, contracted_, work_, more_work_, gated_, senders_gradient_, densities_gradient_;

    StepResults results_;
    StepSize pending_;                  // of the call, edges not yet known
    std::optional<StepSize> reserved_;  // what there is room for
    StepGraphs<StepKey> graphs_;
};

}  // namespace

std::string why_not_on_gpu(const Weights& weights) {
    constexpr size_t kMostShared = 80 << 10;  // that every GPU from compute capability 8.0 on has for a block
    for (const Layer& layer : weights.layers) {
        const Interaction& interaction = layer.interaction;
        if (interaction.edge_input == Interaction::EdgeInput::features)
            if (const std::string why_not = why_no_edge_network(weights, interaction); !why_not.empty()) return why_not;
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
