// SPDX-License-Identifier: MIT
#include "sum/evaluator.h"

#include <algorithm>
#include <array>
#include <span>

#include "neighbors/shorter_edges.h"
#include "potential/batch_evaluation.h"
#include "potential/domain_evaluation.h"

namespace mlff {
namespace {

// Results of one term for one system, before they are added to those of the other terms.
class Addend {
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
    void add_to(const Outputs& to, int64_t atom_count, int64_t owned_count) const {
        const auto add = [](double* sum, const double* numbers, int64_t count) {
            for (int64_t i = 0; sum && i < count; ++i) sum[i] += numbers[i];
        };
        add(to.energy, &energy_, 1);
        add(to.virial, virial_.data(), 9);
        add(to.forces, forces_.data(), 3 * atom_count);
        add(to.atom_energies, atom_energies_.data(), owned_count);
        add(to.atom_virials, atom_virials_.data(), 9 * atom_count);
    }

private:
    double energy_ = 0;
    std::array<double, 9> virial_{};
    std::vector<double> forces_, atom_energies_, atom_virials_;
};

class SumEvaluator : public Evaluator, private BatchEvaluation, private DomainEvaluation {
public:
    SumEvaluator(std::vector<SumTerm> terms, double cutoff)
        : terms_(std::move(terms)), cutoff_(cutoff), shorter_(terms_.size()) {}

    void evaluate(const SystemView& system, const Edges& edges, const Outputs& outputs, ThreadTeam& team) override {
        sum_terms({&system, 1}, system.atom_count, edges, {&outputs, 1}, team,
                  [&](Evaluator& term, const Edges& own_edges, std::span<const Outputs> to) {
                      term.evaluate(system, own_edges, to.front(), team);
                  });
    }

    BatchEvaluation* batches() override {
        return all_have([](Evaluator& term) { return term.batches(); }) ? this : nullptr;
    }
    DomainEvaluation* domains() override {
        return all_have([](Evaluator& term) { return term.domains(); }) ? this : nullptr;
    }

private:
    template <class Capability>
    bool all_have(const Capability& capability) {
        return std::all_of(terms_.begin(), terms_.end(),
                           [&](const SumTerm& term) { return capability(*term.evaluator) != nullptr; });
    }

    // evaluate(term, its edges, where its results go). Atoms from `owned_count` on are ghosts, which have no energies.
    template <class Evaluate>
    void sum_terms(std::span<const SystemView> systems, int64_t owned_count, const Edges& edges,
                   std::span<const Outputs> outputs, ThreadTeam& team, const Evaluate& evaluate) {
        addends_.resize(std::max(addends_.size(), systems.size()));
        for (size_t t = 0; t < terms_.size(); ++t) {
            const bool adds = t > 0;  // the first term writes directly to `outputs`
            own_.assign(outputs.begin(), outputs.end());
            for (size_t s = 0; adds && s < systems.size(); ++s)
                own_[s] = addends_[s].outputs(outputs[s], systems[s].atom_count);
            const bool is_shorter = terms_[t].cutoff < cutoff_;
            evaluate(*terms_[t].evaluator, is_shorter ? shorter_[t].select(edges, terms_[t].cutoff, team) : edges,
                     std::span<const Outputs>(own_));
            for (size_t s = 0; adds && s < systems.size(); ++s)
                addends_[s].add_to(outputs[s], systems[s].atom_count, std::min(owned_count, systems[s].atom_count));
        }
    }

    // ---- BatchEvaluation: if one term reads reverse edges, all terms get them ----

    bool can_batch(const SystemView& first, const SystemView& next) const override {
        return std::all_of(terms_.begin(), terms_.end(),
                           [&](const SumTerm& term) { return term.evaluator->batches()->can_batch(first, next); });
    }
    int64_t most_batch_atoms() const override { return terms_.front().evaluator->batches()->most_batch_atoms(); }
    bool needs_reverse_edges() const override {
        return std::any_of(terms_.begin(), terms_.end(),
                           [](const SumTerm& term) { return term.evaluator->batches()->needs_reverse_edges(); });
    }
    void evaluate_batch(std::span<const SystemView> systems, const Edges& edges, std::span<const Outputs> outputs,
                        ThreadTeam& team) override {
        sum_terms(systems, edges.atom_count, edges, outputs, team,
                  [&](Evaluator& term, const Edges& own_edges, std::span<const Outputs> to) {
                      term.batches()->evaluate_batch(systems, own_edges, to, team);
                  });
    }

    // ---- DomainEvaluation: terms exchange features one after the other, in the same order in every domain ----

    void evaluate_domain(const Domain& domain, const Edges& edges, const Outputs& outputs, ThreadTeam& team) override {
        sum_terms({&domain.atoms, 1}, domain.owned_count, edges, {&outputs, 1}, team,
                  [&](Evaluator& term, const Edges& own_edges, std::span<const Outputs> to) {
                      term.domains()->evaluate_domain(domain, own_edges, to.front(), team);
                  });
    }

    std::vector<SumTerm> terms_;
    double cutoff_;
    std::vector<ShorterEdges> shorter_;  // [term]
    std::vector<Addend> addends_;        // [system of a batch]
    std::vector<Outputs> own_;           // the same
};

}  // namespace

std::unique_ptr<Evaluator> make_sum_evaluator(std::vector<SumTerm> terms, double cutoff) {
    return std::make_unique<SumEvaluator>(std::move(terms), cutoff);
}

}  // namespace mlff
