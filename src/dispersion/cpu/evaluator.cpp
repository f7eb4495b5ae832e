// SPDX-License-Identifier: MIT
#include "dispersion/cpu/evaluator.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "core/error.h"
#include "core/stage_profile.h"
#include "cpu_kernels/kernel_table.h"
#include "dispersion/cpu/columns.h"
#include "dispersion/cpu/triples.h"
#include "dispersion/tables/units.h"
#include "potential/domain_evaluation.h"
#include "potential/ghost_rows.h"

namespace mlff::dispersion::cpu {
namespace {

using kernels::DispersionCounts;
using kernels::DispersionNeighbors;
using kernels::DispersionPairs;
using kernels::DispersionSums;

constexpr int64_t kAtomsPerChunk = 4;  // fixed, so that results do not depend on the number of threads

class CpuEvaluator : public Evaluator, private DomainEvaluation {
public:
    explicit CpuEvaluator(std::shared_ptr<const Tables> tables)
        : tables_(std::move(tables)), kernels_(kernels::choose_kernels<double>()) {}
    bool needs_edges() const override { return false; }
    DomainEvaluation* domains() override { return this; }

    void evaluate(const SystemView& system, const Edges&, const Outputs& outputs, ThreadTeam& team) override {
        domain_ = nullptr;
        place_system(system, tables_->slot, kPairCutoff, atoms_);
        compute(outputs, team);
    }

private:
    void evaluate_domain(const Domain& domain, const Edges&, const Outputs& outputs, ThreadTeam& team) override {
        domain_ = &domain;
        place_domain(domain.atoms, domain.owned_count, tables_->slot, atoms_);
        compute(outputs, team);
    }

    // What a worker needs for one atom after the other.
    struct Scratch {
        std::vector<CellRow> rows;
        std::vector<int32_t> runs;
        TripleNeighbors triples;

        explicit Scratch(const Tables& tables) : triples(tables) {}
    };

    void compute(const Outputs& outputs, ThreadTeam& team) {
        Stages stages(team.stage_log(0));
        stages.begin("sorting of atoms");
        columns_.sort(atoms_, tables_->elements.size());
        while (scratch_.size() < static_cast<size_t>(team.size())) scratch_.emplace_back(*tables_);
        sums_.assign(static_cast<size_t>(atoms_.owned_count), {});
        stages.begin("coordination numbers");
        for_own_atoms(team, [this](int64_t atom, Scratch& scratch) { count_neighbors(atom, scratch); });
        refuse_same_places();
        stages.begin("weights of references");
        weigh(team);
        stages.begin("dispersion of pairs");
        for_own_atoms(team, [this](int64_t atom, Scratch& scratch) { add_pairs(atom, scratch); });
        if (tables_->method.has_triples) {
            stages.begin("dispersion of triples");
            for_own_atoms(team, [this](int64_t atom, Scratch& scratch) { add_triples(atom, scratch); });
        }
        if (outputs.forces || outputs.virial || outputs.atom_virials) {
            stages.begin("forces of coordination numbers");
            sort_gradients(team);
            for_own_atoms(team, [this](int64_t atom, Scratch& scratch) { add_count_gradients(atom, scratch); });
        }
        stages.begin("results");
        write(outputs);
    }

    template <class Work>
    void for_own_atoms(ThreadTeam& team, const Work& work) {
        const auto run_chunk = [&](int64_t chunk, int worker) {
            const int64_t end = std::min(atoms_.owned_count, (chunk + 1) * kAtomsPerChunk);
            for (int64_t atom = chunk * kAtomsPerChunk; atom < end; ++atom)
                work(atom, scratch_[static_cast<size_t>(worker)]);
        };
        team.run((atoms_.owned_count + kAtomsPerChunk - 1) / kAtomsPerChunk, std::ref(run_chunk));
    }

    const double* position(int64_t atom) const { return atoms_.positions.data() + 3 * atom; }
    int32_t slot(int64_t atom) const { return atoms_.slots[static_cast<size_t>(atom)]; }

    // visit(present element, its slot, neighbours) for each element with neighbours.
    template <class Visit>
    void for_each_element(int64_t atom, double cutoff, Scratch& scratch, const Visit& visit) const {
        columns_.find_rows(position(atom), cutoff, scratch.rows);
        for (size_t e = 0; e < columns_.present().size(); ++e) {
            columns_.find_runs(scratch.rows, e, scratch.runs);
            if (scratch.runs.empty()) continue;
            DispersionNeighbors<double> near{.x = columns_.coordinate(0),
                                             .y = columns_.coordinate(1),
                                             .z = columns_.coordinate(2),
                                             .runs = scratch.runs.data(),
                                             .run_count = static_cast<int>(scratch.runs.size() / 2),
                                             .cutoff_square = cutoff * cutoff,
                                             .least_square = kLeastSquare};
            std::copy_n(position(atom), 3, near.center);
            visit(columns_.present()[e], near);
        }
    }

    void count_neighbors(int64_t atom, Scratch& scratch) {
        DispersionSums<double>& sums = sums_[static_cast<size_t>(atom)];
        for_each_element(atom, kCountCutoff, scratch, [&](int32_t other, const DispersionNeighbors<double>& near) {
            DispersionCounts<double> counts{near};
            counts.reach = tables_->reach(slot(atom), other);
            kernels_.sum_dispersion_counts(counts, sums);
        });
    }

    // Every atom finds itself, once.
    void refuse_same_places() const {
        for (size_t atom = 0; atom < sums_.size(); ++atom)
            if (sums_[atom].self != 1)
                fail(Status::system, "two atoms are at the same place, one of them is atom ", atom);
    }

    void weigh(ThreadTeam& team) {
        weights_.resize(static_cast<size_t>(atoms_.count()) * kMaxReferences);
        slopes_.resize(static_cast<size_t>(atoms_.owned_count) * kMaxReferences);
        for_own_atoms(team, [this](int64_t atom, Scratch&) {
            const auto at = static_cast<size_t>(atom) * kMaxReferences;
            std::fill_n(&weights_[at], kMaxReferences, 0.0);
            std::fill_n(&slopes_[at], kMaxReferences, 0.0);
            weigh_references(tables_->references_of(slot(atom)),
                             tables_->reference_count[static_cast<size_t>(slot(atom))],
                             sums_[static_cast<size_t>(atom)].count, &weights_[at], &slopes_[at]);
        });
        weight_stride_ = columns_.padded_count();
        weight_count_ = 0;
        for (const int32_t element : columns_.present())
            weight_count_ =
                std::max(weight_count_, static_cast<size_t>(tables_->reference_count[static_cast<size_t>(element)]));
        sort_rows(weights_, kMaxReferences, weight_count_, sorted_weights_, team);
    }

    void sort_gradients(ThreadTeam& team) {
        gradients_.resize(static_cast<size_t>(atoms_.count()));
        for (size_t i = 0; i < sums_.size(); ++i) gradients_[i] = sums_[i].by_count;
        sort_rows(gradients_, 1, 1, sorted_gradients_, team);
    }

    // Rows of own atoms, [atom][width], also go to their ghosts. The first `wanted` numbers of all are then sorted:
    // [number][weight_stride_].
    void sort_rows(std::vector<double>& rows, size_t width, size_t wanted, std::vector<double>& sorted,
                   ThreadTeam& team) {
        constexpr int64_t kPerChunk = 2048;
        if (domain_) {
            const DomainRows all = {rows.data(), width * sizeof(double)};
            ghost_rows_.fill(domain_->halo, domain_->owned_count, {&all, 1});
        }
        const auto stride = static_cast<size_t>(weight_stride_), count = static_cast<size_t>(atoms_.count());
        sorted.resize(wanted * stride);
        const auto sort_chunk = [&](int64_t chunk, int) {
            const auto begin = static_cast<size_t>(chunk * kPerChunk);
            const size_t end = std::min(count, begin + kPerChunk);
            for (size_t place = begin; place < end; ++place) {
                const double* row = rows.data() + row_of(columns_.order()[place]) * width;
                for (size_t q = 0; q < wanted; ++q) sorted[q * stride + place] = row[q];
            }
        };
        team.run((static_cast<int64_t>(count) + kPerChunk - 1) / kPerChunk, std::ref(sort_chunk));
        for (size_t q = 0; q < wanted; ++q) std::fill_n(&sorted[q * stride + count], stride - count, 0.0);
    }
    size_t row_of(int32_t atom) const {
        if (domain_ || atom < atoms_.owned_count) return static_cast<size_t>(atom);
        return static_cast<size_t>(atoms_.image_of[static_cast<size_t>(atom - atoms_.owned_count)]);
    }

    void share_references(int64_t atom, int32_t other, double* shares, double* share_slopes) const {
        const double* c6 = tables_->c6_of(slot(atom), other);
        const auto at = static_cast<size_t>(atom) * kMaxReferences;
        for (size_t q = 0; q < kMaxReferences; ++q) {
            shares[q] = share_slopes[q] = 0;
            for (size_t p = 0; p < kMaxReferences; ++p) {
                shares[q] += weights_[at + p] * c6[p * kMaxReferences + q];
                share_slopes[q] += slopes_[at + p] * c6[p * kMaxReferences + q];
            }
        }
    }

    void add_pairs(int64_t atom, Scratch& scratch) {
        DispersionSums<double>& sums = sums_[static_cast<size_t>(atom)];
        for_each_element(atom, kPairCutoff, scratch, [&](int32_t other, const DispersionNeighbors<double>& near) {
            const PairForm<double>& form = tables_->forms[tables_->pair(slot(atom), other)];
            DispersionPairs<double> pairs{near};
            pairs.weights = sorted_weights_.data();
            pairs.weight_stride = weight_stride_;
            pairs.reference_count = tables_->reference_count[static_cast<size_t>(other)];
            share_references(atom, other, pairs.shares, pairs.share_slopes);
            pairs.six = form.six, pairs.eight = form.eight;
            pairs.six_radius = form.six_radius, pairs.eight_radius = form.eight_radius;
            pairs.half_exponent = tables_->method.damping.kind == DampingKind::zero ? tables_->half_exponent() : 0;
            pairs.fade_begin = kPairCutoff - (tables_->method.is_smooth ? kFadeWidth : 0);
            pairs.fade_end = kPairCutoff;
            kernels_.sum_dispersion_pairs(pairs, sums);
        });
        sums.energy *= 0.5;
    }

    void add_triples(int64_t atom, Scratch& scratch) {
        TripleNeighbors& near = scratch.triples;
        near.begin(slot(atom));
        for_each_element(atom, kTripleCutoff, scratch, [&](int32_t other, const DispersionNeighbors<double>& found) {
            double shares[kMaxReferences], share_slopes[kMaxReferences];
            share_references(atom, other, shares, share_slopes);
            near.add(found, other, {sorted_weights_.data(), weight_stride_, weight_count_}, shares, share_slopes);
        });
        near.sum(sums_[static_cast<size_t>(atom)]);
    }

    void add_count_gradients(int64_t atom, Scratch& scratch) {
        DispersionSums<double>& sums = sums_[static_cast<size_t>(atom)];
        for_each_element(atom, kCountCutoff, scratch, [&](int32_t other, const DispersionNeighbors<double>& near) {
            DispersionCounts<double> counts{near};
            counts.reach = tables_->reach(slot(atom), other);
            counts.gradient = sorted_gradients_.data();
            counts.own_gradient = sums.by_count;
            kernels_.reverse_dispersion_counts(counts, sums);
        });
    }

    // An atom takes half of what pulls it to a neighbour, and the whole force on itself. Ghosts have nothing: the
    // domain that owns the atom gathers the same pairs.
    void write(const Outputs& to) const {
        constexpr std::array<size_t, 9> kPart = {0, 5, 4, 5, 1, 3, 4, 3, 2};
        const auto count = static_cast<size_t>(domain_ ? atoms_.count() : atoms_.owned_count);
        if (to.energy) *to.energy = 0;
        if (to.virial) std::fill_n(to.virial, 9, 0.0);
        if (to.forces) std::fill_n(to.forces, 3 * count, 0.0);
        if (to.atom_virials) std::fill_n(to.atom_virials, 9 * count, 0.0);
        for (size_t atom = 0; atom < sums_.size(); ++atom) {
            const DispersionSums<double>& sums = sums_[atom];
            if (to.energy) *to.energy += sums.energy;
            if (to.atom_energies) to.atom_energies[atom] = sums.energy;
            if (to.forces) std::copy_n(sums.force, 3, to.forces + 3 * atom);
            for (size_t k = 0; k < 9; ++k) {
                const double virial = -0.5 * sums.virial[kPart[k]];
                if (to.virial) to.virial[k] += virial;
                if (to.atom_virials) to.atom_virials[9 * atom + k] = virial;
            }
        }
    }

    std::shared_ptr<const Tables> tables_;
    const kernels::KernelTable<double>& kernels_;
    const Domain* domain_ = nullptr;  // of the running evaluation; nullptr for whole systems
    AtomSet atoms_;
    Columns columns_;
    GhostRows ghost_rows_;
    std::vector<Scratch> scratch_;              // [worker]
    std::vector<DispersionSums<double>> sums_;  // [own atom]
    std::vector<double> weights_;               // [atom][kMaxReferences]
    std::vector<double> slopes_;                // [own atom][kMaxReferences]
    std::vector<double> sorted_weights_;        // [weight_count_][weight_stride_]
    std::vector<double> gradients_;             // [atom]: dE/dn
    std::vector<double> sorted_gradients_;      // in the order of columns_
    int64_t weight_stride_ = 0;
    size_t weight_count_ = 0;  // the most references of any element here
};

}  // namespace

std::unique_ptr<Evaluator> make_cpu_evaluator(std::shared_ptr<const Tables> tables) {
    return std::make_unique<CpuEvaluator>(std::move(tables));
}

}  // namespace mlff::dispersion::cpu
