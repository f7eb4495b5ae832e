// SPDX-License-Identifier: MIT
#include "gpu/engine/step_evaluator.h"

#include <algorithm>
#include <bitset>
#include <optional>
#include <span>

#include "core/elements.h"
#include "core/error.h"
#include "gpu/engine/memory_need.h"
#include "gpu/engine/placement.h"
#include "gpu/engine/shared_halo.h"
#include "gpu/engine/staged_halo.h"
#include "gpu/engine/step_graphs.h"
#include "gpu/engine/uploaded_edges.h"
#include "gpu/neighbors/gpu_neighbor_list.h"
#include "gpu/runtime/cuda_check.h"
#include "gpu/runtime/cuda_stream.h"
#include "gpu/runtime/device_buffer.h"
#include "gpu/runtime/gpu.h"
#include "neighbors/cell_grid.h"
#include "potential/batch_evaluation.h"
#include "potential/device_evaluation.h"
#include "potential/device_stepper.h"
#include "potential/domain_evaluation.h"
#include "potential/memory_forecasts.h"

namespace mlff::gpu {
namespace {

// So much more than needed is taken, for systems that grow a little.
constexpr double kSpare = 1.125;
int64_t spared(int64_t count) { return count + count / 8; }

// Systems up to this size are evaluated together, until so many atoms are.
constexpr int64_t kMostAtomsInBatch = 1024, kMostBatchAtoms = 16384;

// Rounded up by less than a sixteenth: searches that find a few candidates more or less are the same step, whose graph
// stays.
int64_t rounded_up(int64_t count) {
    int64_t unit = 1;
    while (32 * unit <= count) unit *= 2;
    return (count + unit - 1) / unit * unit;
}

using ElementSet = std::bitset<kMaxAtomicNumber>;

NeighborOptions neighbor_options(double cutoff, double skin) {
    NeighborOptions options;
    options.cutoff = cutoff;
    options.skin = skin;
    options.want_shifts = false;
    options.want_reverse = true;
    return options;
}

class StepEvaluator : public Evaluator,
                      private BatchEvaluation,
                      private DomainEvaluation,
                      private HaloSharing,
                      private DeviceEvaluation,
                      private DeviceStepper,
                      private MemoryForecasts {
public:
    StepEvaluator(const BackendOptions& options, const MakeStepModel& make_model)
        : device_(gpu_ordinal(options.device)),
          memory_limit_bytes_(options.gpu_memory_limit_bytes),
          current_(device_),
          model_(make_model(stream_)),
          neighbors_(neighbor_options(model_->facts().cutoff, options.neighbor_skin)),
          results_(model_->facts().descriptor_count) {
        neighbors_.set_admission([this](int64_t candidate_count, const GpuNeighborMemory& memory) {
            if (!is_listing_) pending_.edges = candidate_count;
            admit(pending_, memory);
        });
        model_->set_stages(&stages_);
        current_.reset();
    }
    ~StepEvaluator() override { current_.emplace(device_, std::nothrow); }  // memory is given back where it was taken

    bool needs_edges() const override { return false; }
    int64_t neighbor_build_count() const override { return neighbors_.build_count(); }

    void evaluate(const SystemView& system, const Edges&, const Outputs& outputs, ThreadTeam& team) override {
        const CurrentDevice current(device_);
        const NvtxRange range("evaluation");
        const GpuStages::Watch watch(stages_, team.profile());
        leave_nothing_running([&] {
            compute(system, wanted_of({&outputs, 1}), true, team);
            results_.write({&system, 1}, {&outputs, 1});
        });
    }

    void evaluate_on_device(const SystemView& system, const DeviceOutputs& outputs, void* stream,
                            ThreadTeam& team) override {
        const CurrentDevice current(device_);
        require_all_on_device(system, outputs);
        leave_nothing_running([&] {
            order_.follow(static_cast<cudaStream_t>(stream), stream_);
            Wanted wanted = wanted_of({&outputs.outputs, 1});
            wanted.virial |= outputs.stress != nullptr;
            compute(system, wanted, false, team);
            results_.require_finite_totals();
            results_.copy(system.atom_count, outputs, stream_);
            check(cudaStreamSynchronize(stream_), "copying the results");
        });
    }

    // Step by step as a graph cannot: the host brings rows from one domain to the other. How many edges there are is
    // asked for at the beginning, because candidates, which are found with the caller's skin, may be many more.
    void evaluate_domain(const Domain& domain, const Edges&, const Outputs& outputs, ThreadTeam& team) override {
        const CurrentDevice current(device_);
        const NvtxRange range("evaluation");
        const GpuStages::Watch watch(stages_, team.profile());
        leave_nothing_running([&] {
            const SystemView& atoms = domain.atoms;
            const bool is_shared = domain.halo.transport == RowTransport::shared;
            StepKind kind = {false,
                             {atoms.atom_count, 0, 1, wanted_of({&outputs, 1}), true},
                             nullptr,
                             is_shared ? static_cast<StepHalo*>(&shared_halo_) : &staged_halo_};
            if (!is_shared)
                kind.size.halo = {static_cast<int64_t>(domain.halo.sent.size()), domain.halo.received_count};
            pending_ = kind.size;
            set_atoms({&atoms, 1}, domain.owned_count);
            prepare(atoms, team);
            take_positions(atoms, true);
            upload_positions();
            stages_.begin({"edges from candidates"}, stream_);
            const bool is_known = domain.list_version != 0 && domain.list_version == list_version_ &&
                                  neighbors_.has_listed_candidates() &&
                                  neighbors_.edges().atom_count == atoms.atom_count;
            if (!is_known) list_neighbors(domain);
            neighbors_.enqueue_reuse(positions_.data(), static_cast<cudaStream_t>(stream_));
            pending_.edges = kind.size.edges = neighbors_.read_edge_count(static_cast<cudaStream_t>(stream_));
            use_neighbors(kind.size, kind.size.edges);
            if (is_shared)
                shared_halo_.set(domain.halo, domain.owned_count, model_->most_ghost_row_bytes(), domain.list_version,
                                 stream_);
            else
                staged_halo_.set(domain.halo, domain.owned_count, model_->most_ghost_row_bytes(), domain.list_version,
                                 stream_);
            enqueue(kind);
            check(cudaStreamSynchronize(stream_), "the evaluation");
            stages_.collect(domain.owned_count, pending_.edges);
            check_distances();
            results_.write_domain(domain, outputs);
        });
    }

    GpuAddress gpu_address() override {
        const CurrentDevice current(device_);
        return shared_halo_.address();
    }
    void reach_gpu(const GpuAddress& address) override {
        const CurrentDevice current(device_);
        shared_halo_.reach(address);
    }

    BatchEvaluation* batches() override { return this; }
    DomainEvaluation* domains() override { return this; }
    HaloSharing* halo_sharing() override { return this; }
    DeviceEvaluation* device_pointers() override { return this; }
    DeviceStepper* device_stepper() override { return this; }
    MemoryForecasts* memory_forecasts() override { return this; }

    double forecast_radius() const override { return neighbors_.options().cutoff + neighbors_.options().skin; }
    MemoryForecast forecast_memory(int64_t atom_count, int64_t edge_count) override {
        Wanted wanted;
        wanted.forces = wanted.virial = wanted.atom_energies = true;
        BufferList step, atoms;
        list_step_buffers(step, {atom_count, rounded_up(edge_count), 1, wanted, true});
        list_atom_buffers(atoms, atom_count, 1);
        const auto with_spare = [](const BufferList& list) {
            return static_cast<int64_t>(static_cast<double>(list.needed_bytes()) * kSpare);
        };
        const int64_t others =
            with_spare(atoms) +
            neighbors_.memory_for(edge_count).needed_bytes;  // these have been taken when a step is admitted
        return {step.needed_bytes() + others, with_spare(step) + others};
    }

    // Larger systems keep the GPU busy alone, and it finds their neighbours faster than the host.
    bool can_batch(const SystemView& first, const SystemView& next) const override {
        return std::max(first.atom_count, next.atom_count) <= kMostAtomsInBatch && model_->can_batch(first, next);
    }
    int64_t most_batch_atoms() const override { return kMostBatchAtoms; }
    bool needs_reverse_edges() const override { return true; }
    bool needs_batch_edges(std::span<const SystemView> systems) const override {
        return !Placement::is_possible(systems);
    }

    void evaluate_batch(std::span<const SystemView> systems, const Edges& edges, std::span<const Outputs> outputs,
                        ThreadTeam& team) override {
        const CurrentDevice current(device_);
        leave_nothing_running([&] {
            if (!needs_batch_edges(systems)) {
                compute_side_by_side(systems, wanted_of(outputs), team);
                return results_.write(systems, outputs);
            }
            pending_ = {edges.atom_count,
                        edges.edge_count,
                        static_cast<int64_t>(systems.size()),
                        wanted_of(outputs),
                        true,
                        true};
            set_atoms(systems);
            prepare(systems.front(), team);
            reserve_step(pending_);
            uploaded_.upload(edges, stream_);
            set_edges({0, pending_.edges, uploaded_.first(), uploaded_.sender(), uploaded_.vector(),
                       uploaded_.distance(), uploaded_.reverse()});
            run_step({false, pending_});
            check_distances();
            results_.write(systems, outputs);
        });
    }

private:
    void require_all_on_device(const SystemView& system, const DeviceOutputs& outputs) const {
        const Outputs& to = outputs.outputs;
        const auto require = [&](const double* pointer, const char* name) {
            require_on_device(pointer, device_, name);
        };
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

    void list_neighbors(const Domain& domain) {
        list_version_ = 0;
        is_listing_ = true;
        struct End {
            bool& flag;
            ~End() { flag = false; }
        } end{is_listing_};
        neighbors_.set_candidates(domain.atoms.atom_count, {domain.owned_count, domain.first, domain.neighbors},
                                  static_cast<cudaStream_t>(stream_));
        list_version_ = domain.list_version;
    }

    // ---- DeviceStepper ----

    int device() const override { return device_; }
    void* stream() const override { return static_cast<cudaStream_t>(stream_); }
    bool has_neighbors(const SystemView& system) const override {
        return atoms_.holds({&system, 1}, system.atom_count) && neighbors_.can_reuse(system);
    }

    void enqueue_step(const SystemView& system, DeviceMotion& motion, bool wants_virial, ThreadTeam& team) override {
        const CurrentDevice current(device_);
        leave_nothing_running([&] {
            begin_step(system, wants_virial, team);
            StepKind kind = {true, pending_, &motion};
            use_neighbors(kind.size);
            launch_step(kind);
        });
    }
    void enqueue_searched_step(const SystemView& system, DeviceMotion& motion, bool wants_virial,
                               ThreadTeam& team) override {
        const CurrentDevice current(device_);
        leave_nothing_running([&] {
            begin_step(system, wants_virial, team);
            StepKind kind = {false, pending_, &motion};
            search(system, motion.positions());
            use_neighbors(kind.size);
            launch_step(kind);
        });
    }
    void begin_step(const SystemView& system, bool wants_virial, ThreadTeam& team) {
        Wanted wanted;
        wanted.forces = true;
        wanted.virial = wants_virial;
        pending_ = {system.atom_count, 0, 1, wanted, false};
        set_atoms({&system, 1});
        prepare(system, team);
    }
    void read_searched(std::vector<double>& positions, Mat3& cell) const override {
        const CurrentDevice current(device_);
        positions.resize(static_cast<size_t>(3 * atoms_.atom_count()));
        cell = neighbors_.searched_cell();
        if (positions.empty()) return;
        check(cudaMemcpyAsync(positions.data(), neighbors_.searched_positions(), positions.size() * sizeof(double),
                              cudaMemcpyDeviceToHost, stream_),
              "copying positions");
        check(cudaStreamSynchronize(stream_), "copying positions");
    }
    void refuse_short_edges() const override { model_->refuse_short_edges(); }

    // ---- the step ----

    struct StepKind {
        bool reuses_candidates = false;  // else the edges are there
        StepSize size;
        DeviceMotion* motion = nullptr;  // of dynamics on the device: moves the atoms before the candidates are reused,
                                         // and takes the results
        StepHalo* halo = nullptr;        // of domains
    };
    struct StepKey {
        bool reuses_candidates = false, is_host = true;
        int64_t motion = 0;      // DeviceMotion::id()
        int64_t generation = 0;  // of the candidates
        Wanted wanted;
        StepEdges edges;
        TilesView tiles;
        SystemsView systems;
        ElementSet elements;

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
        prepare(system, team);
        take_positions(system, is_host);
        if (!neighbors_.can_reuse(system) || !compute_with_candidates()) compute_with_search(system);
    }

    // Systems without boundaries as one: the GPU finds their neighbours too.
    void compute_side_by_side(std::span<const SystemView> systems, const Wanted& wanted, ThreadTeam& team) {
        SystemView all = systems.front();
        all.atom_count = 0;
        for (const SystemView& system : systems) all.atom_count += system.atom_count;
        pending_ = {all.atom_count, 0, static_cast<int64_t>(systems.size()), wanted, true};
        set_atoms(systems);
        prepare(systems.front(), team);
        if (placement_.holds(systems) && placed_build_ == neighbors_.build_count() && neighbors_.can_reuse(all)) {
            placement_.place(systems, host_positions_.data());
            if (compute_with_candidates()) return;
        }
        placement_.choose(systems, neighbors_.options().cutoff + neighbors_.options().skin);
        placement_.place(systems, host_positions_.data());
        compute_with_search(all);
        placed_build_ = neighbors_.build_count();
    }

    // Returns false if atoms have moved too far.
    bool compute_with_candidates() {
        StepKind kind = {true, pending_};
        use_neighbors(kind.size);
        run_step(kind);
        if (results_.is_search_needed()) return false;
        check_distances();
        return true;
    }
    void compute_with_search(const SystemView& system) {
        StepKind kind = {false, pending_};
        if (kind.size.to_host) upload_positions();
        search(system, positions_.data());
        use_neighbors(kind.size);
        run_step(kind);
        check_distances();
    }
    void search(const SystemView& system, const double* positions) {
        SystemView on_device = system;
        on_device.positions = positions;
        stages_.begin({"neighbour search"}, stream_);
        neighbors_.search(on_device, static_cast<cudaStream_t>(stream_));
    }

    // Waits for the results.
    void run_step(const StepKind& kind) {
        launch_step(kind);
        check(cudaStreamSynchronize(stream_), "the evaluation");
        stages_.collect(kind.size.atoms, pending_.edges > 0       ? pending_.edges
                                         : kind.reuses_candidates ? results_.edge_count()
                                                                  : neighbors_.edge_count());
    }
    void launch_step(const StepKind& kind) {
        const StepKey key = {kind.reuses_candidates,
                             kind.size.to_host,
                             kind.motion ? kind.motion->id() : 0,
                             kind.reuses_candidates ? neighbors_.generation() : 0,
                             kind.size.wanted,
                             edges_,
                             atoms_.tiles(),
                             atoms_.systems(),
                             element_set_};
        if (stages_.is_watched()) return enqueue(kind);
        graphs_.run(key, stream_, [&] { enqueue(kind); });
    }

    void enqueue(const StepKind& kind) {
        const Wanted& wanted = kind.size.wanted;
        if (kind.reuses_candidates) {
            stages_.begin({"edges from candidates"}, stream_);
            if (kind.motion)
                kind.motion->enqueue_move(stream_);
            else if (kind.size.to_host)
                upload_positions();
            neighbors_.enqueue_reuse(kind.motion ? kind.motion->positions() : positions_.data(),
                                     static_cast<cudaStream_t>(stream_));
        }
        use_listed(results_.short_edges, 1, "the results");
        results_.short_edges.clear(stream_);
        const Step step = {edges_,
                           atoms_.tiles(),
                           wanted,
                           static_cast<int32_t>(atoms_.atom_count() - atoms_.owned_count()),
                           atoms_.ghost_tiles(),
                           kind.halo};
        model_->enqueue(step, results_, stream_);
        stages_.begin({"sums and results"}, stream_);
        sum_over_systems(atoms_.systems(), model_->energy_view(step), results_.energies.data(),
                         wanted.virials() ? results_.virials.data() : nullptr, results_.partial.data(),
                         results_.totals.data(), stream_);
        if (kind.motion)
            kind.motion->enqueue_finish({results_.forces.data(), results_.totals.data(),
                                         &neighbors_.edges().report->search_needed, results_.short_edges.data()},
                                        stream_);
        else
            results_.download(kind.size, kind.reuses_candidates ? neighbors_.edges().report : nullptr, stream_);
        stages_.finish(stream_);
    }

    void check_distances() const {
        if (results_.has_short_edge()) model_->refuse_short_edges();
    }

    // ---- memory: all that grows with the system is listed here and by the model, and taken before a step; kernels are
    // given what is there ----

    int element_count() const { return static_cast<int>(model_->facts().atomic_numbers.size()); }

    void list_atom_buffers(BufferList& list, int64_t atom_count, int64_t system_count) {
        list.add(positions_, 3 * atom_count, "the atoms");
        atoms_.list_buffers(list, atom_count, system_count, element_count());
    }
    void list_step_buffers(BufferList& list, const StepSize& size) {
        results_.list_buffers(list, size);
        staged_halo_.list_buffers(list, size.halo, model_->most_ghost_row_bytes());
        if (size.has_host_edges) uploaded_.list_buffers(list, size.atoms, size.edges);
        model_->list_buffers(list, size);
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
        const int64_t there = usable_bytes(static_cast<int64_t>(free_bytes)) + held_bytes, limit = memory_limit_bytes_;
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
            const bool has_room =
                static_cast<double>(list.needed_bytes()) * kSpare + static_cast<double>(neighbor_bytes) <=
                static_cast<double>(memory_there(list.held_bytes() + neighbor_bytes).bytes);
            list.reserve(has_room ? kSpare : 1.0);
        }
        if (!results_.is_host_reserved(size)) graphs_.clear();  // also if it then fails half-way
        results_.reserve_host(size);
        reserved_ = size;
    }

    // ---- atoms and edges ----

    void set_atoms(std::span<const SystemView> systems) {
        int64_t atom_count = 0;
        for (const SystemView& system : systems) atom_count += system.atom_count;
        set_atoms(systems, atom_count);
    }
    // Done again only when the atoms are others than before.
    void set_atoms(std::span<const SystemView> systems, int64_t owned_count) {
        if (atoms_.holds(systems, owned_count)) return;
        atoms_.forget();
        int64_t atom_count = 0;
        for (const SystemView& system : systems) atom_count += system.atom_count;
        check_atom_count(atom_count);
        admit(pending_, {neighbors_.held_bytes(), neighbors_.held_bytes()});
        reserve_atoms(atom_count, static_cast<int64_t>(systems.size()));
        atoms_.set(systems, owned_count, model_->facts().atomic_numbers, stream_);
        if (atoms_.elements_present().size() > present_count_) reserved_.reset();  // a model may need room for each
        present_count_ = atoms_.elements_present().size();
        element_set_.reset();
        for (int z : atoms_.elements_present()) element_set_.set(static_cast<size_t>(z));
    }
    void prepare(const SystemView& system, ThreadTeam& team) {
        if (model_->prepare(system, atoms_.elements_present(), team, stream_)) graphs_.clear();
    }

    void take_positions(const SystemView& system, bool is_host) {
        const int64_t count = 3 * system.atom_count;
        if (is_host)
            std::copy_n(system.positions, count, host_positions_.data());
        else if (count > 0)
            check(cudaMemcpyAsync(positions_.data(), system.positions, static_cast<size_t>(count) * sizeof(double),
                                  cudaMemcpyDeviceToDevice, stream_),
                  "copying positions");
    }
    void upload_positions() {
        const int64_t count = 3 * atoms_.atom_count();
        if (count > 0)
            check(cudaMemcpyAsync(positions_.data(), host_positions_.data(),
                                  static_cast<size_t>(count) * sizeof(double), cudaMemcpyHostToDevice, stream_),
                  "copying positions");
    }

    // Takes the edges of the neighbour list, for which room is made.
    void use_neighbors(StepSize& size) { use_neighbors(size, neighbors_.edges().edge_capacity); }
    void use_neighbors(StepSize& size, int64_t most_edges) {
        const GpuEdges<double>& found = neighbors_.edges();
        size.edges = rounded_up(most_edges);
        reserve_step(size);
        set_edges({0, size.edges, found.first, found.sender, found.vector, found.distance, found.reverse});
    }
    void set_edges(const StepEdges& edges) {
        edges_ = edges;
        edges_.atom_count = static_cast<int32_t>(atoms_.owned_count());
        edges_.elements = atoms_.elements();
    }

    int device_;
    int64_t memory_limit_bytes_;            // 0: what is free
    std::optional<CurrentDevice> current_;  // first and last of the members, while they are made and given back
    Stream stream_;
    StreamOrder order_;
    std::shared_ptr<StepModel> model_;
    GpuNeighborList<double> neighbors_;

    AtomSet atoms_;
    ElementSet element_set_;
    size_t present_count_ = 0;  // elements
    DeviceBuffer<double> positions_;
    PinnedBuffer<double> host_positions_;
    UploadedEdges uploaded_;     // of batches
    Placement placement_;        // of batches without boundaries
    int64_t placed_build_ = -1;  // of the neighbour list, when the places were chosen
    StepEdges edges_;
    StagedHalo staged_halo_;  // of domains
    SharedHalo shared_halo_;
    int64_t list_version_ = 0;  // Domain::list_version of the candidates
    bool is_listing_ = false;   // while the caller's candidates are set, of which edges are a part that is not known

    StepResults results_;
    StepSize pending_;                  // of the call, edges not yet known
    std::optional<StepSize> reserved_;  // what there is room for
    StepGraphs<StepKey> graphs_;
    GpuStages stages_;
};

}  // namespace

std::unique_ptr<Evaluator> make_step_evaluator(const BackendOptions& options, const MakeStepModel& make_model) {
    return std::make_unique<StepEvaluator>(options, make_model);
}

}  // namespace mlff::gpu
