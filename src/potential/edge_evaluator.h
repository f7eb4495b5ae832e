// SPDX-License-Identifier: MIT
// Base class of evaluators that work on a list of edges. One system, a batch of systems and a domain all become one
// call of evaluate_atoms().
#pragma once

#include <functional>
#include <vector>

#include "core/threads.h"
#include "potential/batch_evaluation.h"
#include "potential/domain_evaluation.h"
#include "potential/edge_results.h"
#include "potential/ghost_rows.h"

namespace mlff {

class EdgeEvaluator : public Evaluator, private BatchEvaluation, private DomainEvaluation {
public:
    void evaluate(const SystemView& system, const Edges& edges, const Outputs& outputs, ThreadTeam& team) final {
        evaluate_batch({&system, 1}, edges, {&outputs, 1}, team);
    }
    BatchEvaluation* batches() final { return this; }
    DomainEvaluation* domains() final { return this; }

protected:
    // Atoms from `owned_count` on are ghosts. They get their features from fill_ghosts().
    virtual void evaluate_atoms(std::span<const SystemView> systems, const Edges& edges,
                                std::span<const Outputs> outputs, int64_t owned_count, ThreadTeam& team) = 0;
    bool can_batch(const SystemView& first, const SystemView& next) const override {
        (void)first, (void)next;
        return true;
    }

    // Copies features or gradients of own atoms to their ghosts, in this domain and in others. Does nothing if there
    // are no domains.
    void fill_ghosts(std::span<const DomainRows> rows) {
        if (domain_) ghost_rows_.fill(domain_->halo, domain_->owned_count, rows);
    }

    // visit(index of the system, its first atom, the end of its atoms)
    template <class Visit>
    static void for_each_system(std::span<const SystemView> systems, const Visit& visit) {
        int64_t begin = 0;
        for (size_t s = 0; s < systems.size(); ++s) {
            visit(s, begin, begin + systems[s].atom_count);
            begin += systems[s].atom_count;
        }
    }

    // Forces and virials of all systems from the gradient [edge][3]. Allocates nothing. Two threads share a system's
    // work.
    void write_edge_results(std::span<const SystemView> systems, const Edges& edges, const double* gradient,
                            std::span<const Outputs> outputs, ThreadTeam& team) {
        const auto write = [&](int64_t chunk, int) {
            const auto s = static_cast<size_t>(chunk / 2);
            const auto write_some = chunk % 2 == 0 ? write_forces : write_virials;
            write_some(edges, gradient, first_atoms_[s], first_atoms_[s + 1], outputs[s]);
        };
        team.run(2 * static_cast<int64_t>(systems.size()), std::ref(write));
    }

private:
    void evaluate_batch(std::span<const SystemView> systems, const Edges& edges, std::span<const Outputs> outputs,
                        ThreadTeam& team) final {
        domain_ = nullptr;
        find_first_atoms(systems);
        evaluate_atoms(systems, edges, outputs, edges.atom_count, team);
    }
    void evaluate_domain(const Domain& domain, const Edges& edges, const Outputs& outputs, ThreadTeam& team) final {
        domain_ = &domain;
        find_first_atoms({&domain.atoms, 1});
        evaluate_atoms({&domain.atoms, 1}, edges, {&outputs, 1}, domain.owned_count, team);
    }

    void find_first_atoms(std::span<const SystemView> systems) {
        first_atoms_.assign(1, 0);
        for (const SystemView& system : systems) first_atoms_.push_back(first_atoms_.back() + system.atom_count);
    }

    const Domain* domain_ = nullptr;  // of the running evaluation; nullptr for whole systems
    GhostRows ghost_rows_;
    std::vector<int64_t> first_atoms_;  // [system + 1]
};

}  // namespace mlff
