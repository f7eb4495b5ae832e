// SPDX-License-Identifier: MIT
// The CPU evaluator of pair potentials: E_i = 1/2 sum over edges of V(element_i, element_j, r).
#pragma once

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "core/buffer.h"
#include "potential/edge_evaluator.h"
#include "potential/edge_results.h"

namespace mlff {

// `PairTerm`: term(atomic number, atomic number, r) returns {energy, slope} of V in double precision.
template <class PairTerm>
class PairEvaluator : public EdgeEvaluator {
public:
    explicit PairEvaluator(PairTerm term) : term_(std::move(term)) {}

private:
    static constexpr int64_t kAtomsPerChunk = 256;  // fixed, so that results do not depend on the number of threads

    void evaluate_atoms(std::span<const SystemView> systems, const Edges& edges, std::span<const Outputs> outputs,
                        int64_t owned_count, ThreadTeam& team) override {
        gather_numbers(systems);
        energies_.assign(static_cast<size_t>(edges.atom_count), 0.0);
        gradient_.resize_discard(static_cast<size_t>(3 * edges.edge_count));
        const auto evaluate_chunk = [&](int64_t chunk, int) {
            const int64_t end = std::min(edges.atom_count, (chunk + 1) * kAtomsPerChunk);
            for (int64_t atom = chunk * kAtomsPerChunk; atom < end; ++atom) evaluate_atom(edges, atom);
        };
        team.run((edges.atom_count + kAtomsPerChunk - 1) / kAtomsPerChunk, std::ref(evaluate_chunk));
        for_each_system(systems, [&](size_t s, int64_t begin, int64_t end) {
            const Outputs& to = outputs[s];
            const double* energies = energies_.data() + begin;
            const int64_t count = std::min(end, owned_count) - begin;
            if (to.energy) *to.energy = 0;
            for (int64_t i = 0; to.energy && i < count; ++i) *to.energy += energies[i];
            if (to.atom_energies) std::copy_n(energies, count, to.atom_energies);
            write_forces(edges, gradient_.data(), begin, end, to);
            write_virials(edges, gradient_.data(), begin, end, to);
        });
    }

    // Every pair is in the list from both ends, so an edge takes half of the pair's energy and half of its slope.
    void evaluate_atom(const Edges& edges, int64_t atom) {
        double& energy = energies_[static_cast<size_t>(atom)];
        for (int64_t edge = edges.first[atom]; edge < edges.first[atom + 1]; ++edge) {
            const double r = edges.distance[edge];
            const auto pair =
                term_(numbers_[static_cast<size_t>(atom)], numbers_[static_cast<size_t>(edges.sender[edge])], r);
            const double pull = r > 0 ? 0.5 * pair.slope / r : 0;
            energy += 0.5 * pair.energy;
            for (int64_t k = 0; k < 3; ++k)
                gradient_[static_cast<size_t>(3 * edge + k)] = pull * edges.vector[3 * edge + k];
        }
    }

    void gather_numbers(std::span<const SystemView> systems) {
        numbers_.clear();
        for (const SystemView& system : systems)
            numbers_.insert(numbers_.end(), system.atomic_numbers, system.atomic_numbers + system.atom_count);
    }

    PairTerm term_;
    std::vector<int32_t> numbers_;  // [atom]
    std::vector<double> energies_;  // [atom]
    Buffer<double> gradient_;       // [edge][3]
};

}  // namespace mlff
