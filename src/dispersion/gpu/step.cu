// SPDX-License-Identifier: MIT
#include "dispersion/gpu/step.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "dispersion/gpu/kernels.h"
#include "dispersion/tables/units.h"
#include "gpu/engine/step_evaluator.h"
#include "gpu/engine/step_model.h"
#include "gpu/engine/warp.h"
#include "neighbors/lattice.h"

namespace mlff::dispersion::gpu {
namespace {

using namespace mlff::gpu;

// Of the list that the engine keeps beside it; D3 reads no edges.
constexpr double kListCutoff = 1;  // angstrom

template <class Real>
std::vector<Real> as(const std::vector<double>& numbers) {
    return {numbers.begin(), numbers.end()};
}

// The part of the tables for the elements that are present, on the device.
template <class Real>
class DeviceTables {
public:
    // `slots`: of the elements present, ascending. Returns whether memory has moved.
    bool set(const Tables& all, const std::vector<int>& slots, cudaStream_t stream) {
        if (slots == slots_) return std::exchange(has_moved_, false);
        slots_.clear();     // if it fails, all are uploaded again,
        has_moved_ = true;  // and graphs of earlier steps are invalid
        const Tables tables = make_tables(elements_of(all, slots), all.method);
        std::vector<int32_t> kind_of_element(all.elements.size(), -1);
        for (size_t kind = 0; kind < slots.size(); ++kind)
            kind_of_element[static_cast<size_t>(slots[kind])] = static_cast<int32_t>(kind);
        std::vector<PairForm<Real>> forms;
        for (const PairForm<double>& form : tables.forms)
            forms.push_back({static_cast<Real>(form.six), static_cast<Real>(form.eight),
                             static_cast<Real>(form.six_radius), static_cast<Real>(form.eight_radius)});
        upload(kind_of_element_, kind_of_element, stream);
        upload(reference_count_, tables.reference_count, stream);
        upload(reference_counts_, as<Real>(tables.reference_counts), stream);
        upload(c6_, as<Real>(tables.c6), stream);
        upload(covalent_radius_, as<Real>(tables.covalent_radius), stream);
        upload(forms_, forms, stream);
        most_references_ = tables.reference_count.empty()
                               ? 0
                               : *std::max_element(tables.reference_count.begin(), tables.reference_count.end());
        slots_ = slots;
        return std::exchange(has_moved_, false);
    }

    KindTables<Real> view() const {
        return {static_cast<int32_t>(slots_.size()),
                kind_of_element_.data(),
                reference_count_.data(),
                reference_counts_.data(),
                c6_.data(),
                covalent_radius_.data(),
                forms_.data()};
    }
    int64_t kind_count() const { return static_cast<int64_t>(slots_.size()); }
    int reference_count() const {
        return most_references_ <= kFewReferences     ? kFewReferences
               : most_references_ <= kUsualReferences ? kUsualReferences
                                                      : kMaxReferences;
    }

private:
    static std::vector<int> elements_of(const Tables& all, const std::vector<int>& slots) {
        std::vector<int> elements;
        for (const int slot : slots) elements.push_back(all.elements[static_cast<size_t>(slot)]);
        return elements;
    }

    std::vector<int> slots_;
    bool has_moved_ = false;  // the memory, and prepare() has not said so
    int most_references_ = 0;
    DeviceBuffer<int32_t> kind_of_element_, reference_count_;
    DeviceBuffer<Real> reference_counts_, c6_, covalent_radius_;
    DeviceBuffer<PairForm<Real>> forms_;
};

template <class Real>
class DispersionStep : public StepModel {
public:
    DispersionStep(std::shared_ptr<const Tables> tables, cudaStream_t stream) : tables_(std::move(tables)) {
        facts_.atomic_numbers = tables_->elements;
        facts_.cutoff = kListCutoff;
        facts_.reads_edges = false;
        facts_.wants_runs = true;
        upload(alone_, std::vector<ElementEnergy>(tables_->elements.size()), stream);
    }

    const StepModelFacts& facts() const override { return facts_; }
    bool prepare(const SystemView& system, const std::vector<int>& elements_present, ThreadTeam&,
                 cudaStream_t stream) override {
        check_images(system);
        present_ = elements_present;
        std::sort(present_.begin(), present_.end());
        return kinds_.set(*tables_, present_, stream);
    }
    bool can_batch(const SystemView&, const SystemView&) const override { return false; }

    void list_buffers(BufferList& list, const StepSize& size) override {
        constexpr const char* kAtoms = "the atoms";
        const int64_t tiles = tiles_of(size.atoms) + 1, slots = kTileAtoms * tiles;  // ghosts begin a tile
        list.add(frame_, 1, kAtoms);
        list.add(boxes_, tiles, kAtoms);
        list.add(atom_of_slot_, slots, kAtoms);
        list.add(kind_of_slot_, slots, kAtoms);
        list.add(places_, slots, kAtoms);
        list.add(rows_, slots * row_length(kMaxReferences), kAtoms);
        list.add(shares_, slots * kinds_.kind_count() * share_length(kMaxReferences),
                 "shares of dispersion coefficients");
        list.add(sums_, slots * kSumCount, kAtoms);
        list.add(tile_virials_, tiles * 9, kAtoms);
        list.add(atom_counts_, size.atoms, kAtoms);
        list.add(atom_slopes_, size.atoms, kAtoms);
    }

    int64_t most_ghost_row_bytes() const override { return sizeof(double); }

    void enqueue(const Step& step, StepResults& results, cudaStream_t stream) override {
        const Work<Real> work = work_of(step, results);
        begin_stage("atoms in tiles", Direction::forward, stream);
        place(work, stream);
        begin_stage("coordination numbers", Direction::forward, stream);
        count_neighbors(work, stream);
        fill_ghost_sums(step, work, kCountSum, atom_counts_.data(), Direction::forward, stream);
        begin_stage("dispersion coefficients", Direction::forward, stream);
        weigh(work, stream);
        begin_stage("dispersion of pairs", Direction::forward, stream);
        sum_pairs(work, stream);
        if (step.wanted.gradients()) {
            begin_stage("coordination numbers", Direction::reverse, stream);
            fill_ghost_sums(step, work, kSlopeSum, atom_slopes_.data(), Direction::reverse, stream);
            sum_gradients(work, stream);
        }
        begin_stage("sums of dispersion", Direction::reverse, stream);
        write_results(work, stream);
    }

    EnergyView energy_view(const Step& step) const override { return {step.edges.elements, alone_.data()}; }
    [[noreturn]] void refuse_short_edges() const override { fail(Status::system, "two atoms are at the same place"); }

private:
    // Tiles look at every image within the cutoff.
    static void check_images(const SystemView& system) {
        constexpr double kMostImages = 1e7;
        const Lattice lattice = make_lattice(system);
        double images = 1;
        for (size_t k = 0; k < 3; ++k)
            if (lattice.periodic[k]) images *= 2 * kPairCutoff / lattice.height[k] + 3;
        if (images > kMostImages)
            fail(Status::system, "the cell is so small that about ", images,
                 " images of it would be within the reach of the dispersion");
    }

    void fill_ghost_sums(const Step& step, const Work<Real>& work, Sum which, double* of_atoms, Direction direction,
                         cudaStream_t stream) {
        if (!step.halo) return;
        write_sums(work, which, of_atoms, stream);
        fill_ghosts(step, of_atoms, 1, direction, 0, stream);
        read_sums(work, which, of_atoms, stream);
    }

    Work<Real> work_of(const Step& step, StepResults& results) {
        Work<Real> work;
        work.owned_count = step.edges.atom_count;
        work.ghost_count = step.ghost_count;
        work.own_tile_count = static_cast<int32_t>(tiles_of(work.owned_count));
        work.tile_count = static_cast<int32_t>(work.own_tile_count + tiles_of(work.ghost_count));
        work.part_count = static_cast<int32_t>(parts_for(work.own_tile_count));
        work.reference_count = kinds_.reference_count();
        work.has_atom_virials = step.wanted.virials() && (step.wanted.atom_virials || step.ghost_count > 0);
        work.positions = step.positions;
        work.elements = step.edges.elements;
        work.order = step.halo ? nullptr : step.runs;
        work.cell = step.halo ? nullptr : step.cells;
        work.tables = kinds_.view();
        work.damping = tables_->method.damping.kind;
        work.six = static_cast<Real>(tables_->method.damping.s6);
        work.half_exponent = tables_->half_exponent();
        work.is_smooth = tables_->method.is_smooth;
        work.frame = frame_.data();
        work.boxes = boxes_.data();
        work.atom_of_slot = atom_of_slot_.data();
        work.kind_of_slot = kind_of_slot_.data();
        work.places = places_.data();
        work.rows = rows_.data();
        work.shares = shares_.data();
        work.sums = sums_.data();
        work.tile_virials = tile_virials_.data();
        work.has_short_edge = results.short_edges.data();
        work.energies = results.energies.data();
        work.forces = step.wanted.forces ? results.forces.data() : nullptr;
        work.virials = step.wanted.virials() ? results.virials.data() : nullptr;
        return work;
    }

    std::shared_ptr<const Tables> tables_;
    StepModelFacts facts_;
    std::vector<int> present_;  // a member, so that a step allocates no memory
    DeviceTables<Real> kinds_;
    DeviceBuffer<ElementEnergy> alone_;  // [element]: energies of single atoms, all zero
    DeviceBuffer<Frame> frame_;
    DeviceBuffer<TileBox<Real>> boxes_;
    DeviceBuffer<int32_t> atom_of_slot_, kind_of_slot_;
    DeviceBuffer<Four<Real>> places_, rows_, shares_;
    DeviceBuffer<Fixed> sums_, tile_virials_;
    DeviceBuffer<double> atom_counts_, atom_slopes_;
};

}  // namespace

bool is_available() { return true; }

MakeStepModel make_step_model(std::shared_ptr<const Tables> tables, const BackendOptions& options) {
    if (tables->method.has_triples) fail(Status::unsupported, "terms of three atoms (:atm) run on the CPU only");
    const bool is_double = options.precision == Precision::fp64;
    return [tables = std::move(tables), is_double](void* stream_in) -> std::shared_ptr<StepModel> {
        const auto stream = static_cast<cudaStream_t>(stream_in);
        if (is_double) return std::make_shared<DispersionStep<double>>(tables, stream);
        return std::make_shared<DispersionStep<float>>(tables, stream);
    };
}

std::unique_ptr<Evaluator> make_gpu_evaluator(std::shared_ptr<const Tables> tables, const BackendOptions& options) {
    return make_step_evaluator(options, make_step_model(std::move(tables), options));
}

}  // namespace mlff::dispersion::gpu
