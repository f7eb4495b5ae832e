// SPDX-License-Identifier: MIT
#include "potential/combined_evaluator.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>

#include "neighbors/shorter_edges.h"
#include "potential/batch_evaluation.h"
#include "potential/domain_evaluation.h"

namespace mlff {
namespace {

// Results of one part for one system, before they join those of the other parts.
class PartResults {
public:
    // Memory for everything that `to` asks for except descriptors.
    Outputs outputs(const Outputs& to, int64_t atom_count) {
        const auto reserve = [&](std::vector<double>& numbers, const double* wanted, int64_t per_atom) {
            if (wanted) numbers.resize(static_cast<size_t>(per_atom * atom_count));
            return wanted ? numbers.data() : nullptr;
        };
        Outputs own;
        own.energy = to.energy ? &energy_ : nullptr;
        own.virial = to.virial ? virial_.data() : nullptr;
        own.forces = reserve(forces_, to.forces, 3);
        own.atom_energies = reserve(atom_energies_, to.atom_energies, 1);
        own.atom_virials = reserve(atom_virials_, to.atom_virials, 9);
        return own;
    }
    // Only `owned_count` atoms have energies; all atoms, ghosts too, have forces and virials.
    void join(const Outputs& to, const Joining& joining, int64_t atom_count, int64_t owned_count) const {
        const auto join_all = [&](double* joined, const double* numbers, int64_t count) {
            for (int64_t i = 0; joined && i < count; ++i) joined[i] = joining.joined(joined[i], numbers[i]);
        };
        join_all(to.energy, &energy_, 1);
        join_all(to.virial, virial_.data(), 9);
        join_all(to.forces, forces_.data(), 3 * atom_count);
        join_all(to.atom_energies, atom_energies_.data(), owned_count);
        join_all(to.atom_virials, atom_virials_.data(), 9 * atom_count);
    }
    // Adds to the variances of a mean that this part has not joined yet.
    void add_variances(const Outputs& mean, const Joining& joining, int64_t atom_count) const {
        if (mean.sigma_energy_per_atom) *mean.sigma_energy_per_atom += joining.added_variance(mean.energy, &energy_, 1);
        for (int64_t atom = 0; mean.sigma_forces && atom < atom_count; ++atom)
            mean.sigma_forces[atom] += joining.added_variance(mean.forces + 3 * atom, forces_.data() + 3 * atom, 3);
    }
    // From a mean that part `p` has not joined yet.
    void write_deviations(const Outputs& mean, const Joining& joining, size_t p, int64_t atom_count) const {
        if (mean.energy_deviations) mean.energy_deviations[p - 1] = joining.deviation(*mean.energy, energy_);
        const int64_t count = mean.force_deviations ? 3 * atom_count : 0, first = static_cast<int64_t>(p - 1) * count;
        for (int64_t i = 0; i < count; ++i)
            mean.force_deviations[first + i] = joining.deviation(mean.forces[i], forces_[static_cast<size_t>(i)]);
    }

private:
    double energy_ = 0;
    std::array<double, 9> virial_{};
    std::vector<double> forces_, atom_energies_, atom_virials_;
};

// Where the mean goes that a spread needs, if the caller does not want it.
class UnwantedMean {
public:
    // `to` with a place for every mean that its spread needs, and variances of 0.
    Outputs completed(Outputs to, int64_t atom_count) {
        if (to.sigma_energy_per_atom) *to.sigma_energy_per_atom = 0;
        if ((to.sigma_energy_per_atom || to.energy_deviations) && !to.energy) to.energy = &energy_;
        if (!to.sigma_forces && !to.force_deviations) return to;
        if (to.sigma_forces) std::fill_n(to.sigma_forces, atom_count, 0.0);
        if (!to.forces) forces_.resize(static_cast<size_t>(3 * atom_count));
        if (!to.forces) to.forces = forces_.data();
        return to;
    }

private:
    double energy_ = 0;
    std::vector<double> forces_;
};

void finish_spread(const Outputs& to, int64_t atom_count) {
    if (to.sigma_energy_per_atom)
        *to.sigma_energy_per_atom =
            std::sqrt(*to.sigma_energy_per_atom) / static_cast<double>(std::max<int64_t>(atom_count, 1));
    for (int64_t atom = 0; to.sigma_forces && atom < atom_count; ++atom)
        to.sigma_forces[atom] = std::sqrt(to.sigma_forces[atom]);
}

class CombinedEvaluator : public Evaluator, private BatchEvaluation, private DomainEvaluation {
public:
    CombinedEvaluator(std::vector<CombinedPart> parts, std::vector<Joining> joinings)
        : parts_(std::move(parts)), joinings_(std::move(joinings)), shorter_(parts_.size()) {
        for (const CombinedPart& part : parts_) cutoff_ = std::max(cutoff_, part.cutoff);
    }

    void evaluate(const SystemView& system, const Edges& edges, const Outputs& outputs, ThreadTeam& team) override {
        join_parts({&system, 1}, kAllAtoms, edges, {&outputs, 1}, team,
                   [&](Evaluator& part, const Edges& own_edges, std::span<const Outputs> to) {
                       part.evaluate(system, own_edges, to.front(), team);
                   });
    }
    bool needs_edges() const override {
        return std::any_of(parts_.begin(), parts_.end(),
                           [](const CombinedPart& part) { return part.evaluator->needs_edges(); });
    }
    int64_t neighbor_build_count() const override {
        int64_t count = 0;
        for (const CombinedPart& part : parts_) count += part.evaluator->neighbor_build_count();
        return count;
    }

    BatchEvaluation* batches() override {
        return all_have([](Evaluator& part) { return part.batches(); }) ? this : nullptr;
    }
    DomainEvaluation* domains() override {
        return all_have([](Evaluator& part) { return part.domains(); }) ? this : nullptr;
    }

private:
    static constexpr int64_t kAllAtoms = std::numeric_limits<int64_t>::max();  // there are no ghosts

    template <class Capability>
    bool all_have(const Capability& capability) {
        return std::all_of(parts_.begin(), parts_.end(),
                           [&](const CombinedPart& part) { return capability(*part.evaluator) != nullptr; });
    }

    // evaluate(part, its edges, where its results go). Atoms from `owned_count` on are ghosts, which have no energies.
    template <class Evaluate>
    void join_parts(std::span<const SystemView> systems, int64_t owned_count, const Edges& edges,
                    std::span<const Outputs> outputs, ThreadTeam& team, const Evaluate& evaluate) {
        results_.resize(std::max(results_.size(), systems.size()));
        unwanted_.resize(results_.size());
        joined_.resize(systems.size());
        own_.resize(systems.size());
        for (size_t s = 0; s < systems.size(); ++s)
            joined_[s] = unwanted_[s].completed(outputs[s], systems[s].atom_count);
        for (size_t p = 0; p < parts_.size(); ++p) {
            for (size_t s = 0; s < systems.size(); ++s)
                own_[s] = p == 0 ? without_spread(joined_[s])  // it writes directly to where the results are joined
                                 : results_[s].outputs(joined_[s], systems[s].atom_count);
            evaluate(*parts_[p].evaluator, edges_of(p, systems, edges, team), std::span<const Outputs>(own_));
            for (size_t s = 0; p > 0 && s < systems.size(); ++s) {
                results_[s].add_variances(joined_[s], joinings_[p], systems[s].atom_count);
                results_[s].write_deviations(joined_[s], joinings_[p], p, systems[s].atom_count);
                results_[s].join(joined_[s], joinings_[p], systems[s].atom_count,
                                 std::min(owned_count, systems[s].atom_count));
            }
        }
        for (size_t s = 0; s < systems.size(); ++s) finish_spread(joined_[s], systems[s].atom_count);
    }
    static Outputs without_spread(Outputs outputs) {
        outputs.sigma_energy_per_atom = outputs.sigma_forces = nullptr;
        outputs.energy_deviations = outputs.force_deviations = nullptr;
        return outputs;
    }
    // Of a part that finds its neighbours itself: no edges, but the number of atoms.
    const Edges& edges_of(size_t p, std::span<const SystemView> systems, const Edges& edges, ThreadTeam& team) {
        const double cutoff = parts_[p].cutoff;
        if (cutoff > 0) return cutoff < cutoff_ ? shorter_[p].select(edges, cutoff, team) : edges;
        none_ = {};
        for (const SystemView& system : systems) none_.atom_count += system.atom_count;
        return none_;
    }

    // ---- BatchEvaluation: if one part reads edges or reverse edges, all parts get them ----

    bool can_batch(const SystemView& first, const SystemView& next) const override {
        return std::all_of(parts_.begin(), parts_.end(),
                           [&](const CombinedPart& part) { return part.evaluator->batches()->can_batch(first, next); });
    }
    int64_t most_batch_atoms() const override { return parts_.front().evaluator->batches()->most_batch_atoms(); }
    bool needs_batch_edges(std::span<const SystemView> systems) const override {
        return std::any_of(parts_.begin(), parts_.end(), [&](const CombinedPart& part) {
            return part.cutoff > 0 && part.evaluator->batches()->needs_batch_edges(systems);
        });
    }
    bool needs_reverse_edges() const override {
        return std::any_of(parts_.begin(), parts_.end(),
                           [](const CombinedPart& part) { return part.evaluator->batches()->needs_reverse_edges(); });
    }
    void evaluate_batch(std::span<const SystemView> systems, const Edges& edges, std::span<const Outputs> outputs,
                        ThreadTeam& team) override {
        join_parts(systems, kAllAtoms, edges, outputs, team,
                   [&](Evaluator& part, const Edges& own_edges, std::span<const Outputs> to) {
                       part.batches()->evaluate_batch(systems, own_edges, to, team);
                   });
    }

    // ---- DomainEvaluation: parts exchange features one after the other, in the same order in every domain ----

    void evaluate_domain(const Domain& domain, const Edges& edges, const Outputs& outputs, ThreadTeam& team) override {
        join_parts({&domain.atoms, 1}, domain.owned_count, edges, {&outputs, 1}, team,
                   [&](Evaluator& part, const Edges& own_edges, std::span<const Outputs> to) {
                       part.domains()->evaluate_domain(domain, own_edges, to.front(), team);
                   });
    }

    std::vector<CombinedPart> parts_;
    std::vector<Joining> joinings_;
    double cutoff_ = 0;                  // the longest
    std::vector<ShorterEdges> shorter_;  // [part]
    Edges none_;
    // [system of a batch]
    std::vector<PartResults> results_;
    std::vector<UnwantedMean> unwanted_;
    std::vector<Outputs> joined_, own_;
};

}  // namespace

std::unique_ptr<Evaluator> make_combined_evaluator(std::vector<CombinedPart> parts, std::vector<Joining> joinings) {
    return std::make_unique<CombinedEvaluator>(std::move(parts), std::move(joinings));
}

}  // namespace mlff
