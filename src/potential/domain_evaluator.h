// SPDX-License-Identifier: MIT
// An evaluator for which one system, several that are joined, and a part of one are the same work.
#pragma once

#include "potential/evaluator.h"
#include "potential/ghost_rows.h"

namespace mlff {

class DomainEvaluator : public Evaluator {
public:
    void evaluate(const SystemView& system, const Edges& edges, const Outputs& outputs, ThreadTeam& team) final {
        evaluate_joined({&system, 1}, edges, {&outputs, 1}, team);
    }
    void evaluate_joined(std::span<const SystemView> systems, const Edges& edges, std::span<const Outputs> outputs,
                         ThreadTeam& team) final {
        domain_ = nullptr;
        evaluate_atoms(systems, edges, outputs, edges.atom_count, team);
    }
    void evaluate_domain(const Domain& domain, const Edges& edges, const Outputs& outputs, ThreadTeam& team) final {
        domain_ = &domain;
        evaluate_atoms({&domain.atoms, 1}, edges, {&outputs, 1}, domain.owned_count, team);
    }

protected:
    // Atoms from `owned_count` on are ghosts, whose rows fill_ghosts() fills.
    virtual void evaluate_atoms(std::span<const SystemView> systems, const Edges& edges,
                                std::span<const Outputs> outputs, int64_t owned_count, ThreadTeam& team) = 0;

    // Brings what other atoms read of an atom from own atoms to ghosts, of this domain and of others. Does nothing for
    // whole systems.
    void fill_ghosts(std::span<const DomainRows> rows) {
        if (domain_) ghost_rows_.fill(domain_->halo, domain_->owned_count, rows);
    }

    // visit(system, its first atom, the end of its atoms)
    template <class Visit>
    static void for_each_system(std::span<const SystemView> systems, const Visit& visit) {
        int64_t begin = 0;
        for (size_t s = 0; s < systems.size(); ++s) {
            visit(s, begin, begin + systems[s].atom_count);
            begin += systems[s].atom_count;
        }
    }

private:
    const Domain* domain_ = nullptr;  // of this evaluation; nullptr: whole systems
    GhostRows ghost_rows_;
};

}  // namespace mlff
