// SPDX-License-Identifier: MIT
// The CPU evaluator of every sum over pairs: E_i = 1/2 sum over edges of V(element_i, element_j, r).
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <utility>
#include <vector>

#include "potential/edge_evaluator.h"

namespace mlff {

// `PairTerm`: term(atomic number, atomic number, r) returns {energy, slope} of V, in double precision.
template <class PairTerm>
class PairEvaluator : public EdgeEvaluator {
public:
    explicit PairEvaluator(PairTerm term) : term_(std::move(term)) {}

private:
    static constexpr int64_t kAtomsPerChunk = 256;  // fixed, so that results do not depend on the number of threads

    // What an own atom has of its pairs.
    struct Share {
        double energy = 0;
        std::array<double, 3> force{};
        std::array<double, 9> virial{};
    };

    void evaluate_atoms(std::span<const SystemView> systems, const Edges& edges, std::span<const Outputs> outputs,
                        int64_t owned_count, ThreadTeam& team) override {
        gather_numbers(systems);
        shares_.resize(static_cast<size_t>(edges.atom_count));
        const bool wants_virials =
            std::any_of(outputs.begin(), outputs.end(), [](const Outputs& to) { return to.virial || to.atom_virials; });
        const auto evaluate_chunk = [&](int64_t chunk, int) {
            const int64_t end = std::min(edges.atom_count, (chunk + 1) * kAtomsPerChunk);
            for (int64_t atom = chunk * kAtomsPerChunk; atom < end; ++atom)
                shares_[static_cast<size_t>(atom)] =
                    atom < owned_count ? share_of(edges, atom, wants_virials) : Share{};
        };
        team.run((edges.atom_count + kAtomsPerChunk - 1) / kAtomsPerChunk, std::ref(evaluate_chunk));
        for_each_system(systems, [&](size_t s, int64_t begin, int64_t end) {
            const std::span<const Share> shares(shares_.data() + begin, static_cast<size_t>(end - begin));
            write(shares, static_cast<size_t>(std::min(end, owned_count) - begin), outputs[s]);
        });
    }

    // Every pair of own atoms is in the list from both ends. An atom takes half of a pair's energy and virial, and the
    // whole force on itself. Of a pair with a ghost, the domain that owns the other atom has its share: forces and
    // virials of ghosts are zero.
    Share share_of(const Edges& edges, int64_t atom, bool wants_virials) const {
        Share share;
        for (int64_t edge = edges.first[atom]; edge < edges.first[atom + 1]; ++edge) {
            const double r = edges.distance[edge];
            const double* vector = edges.vector + 3 * edge;  // to the neighbour
            const auto pair =
                term_(numbers_[static_cast<size_t>(atom)], numbers_[static_cast<size_t>(edges.sender[edge])], r);
            const double pull = r > 0 ? pair.slope / r : 0;
            share.energy += 0.5 * pair.energy;
            for (size_t i = 0; i < 3; ++i) share.force[i] += pull * vector[i];
            if (!wants_virials) continue;
            for (size_t i = 0; i < 3; ++i)
                for (size_t j = 0; j < 3; ++j) share.virial[3 * i + j] -= 0.5 * pull * vector[i] * vector[j];
        }
        return share;
    }

    static void write(std::span<const Share> shares, size_t owned_count, const Outputs& to) {
        if (to.energy) *to.energy = 0;
        if (to.virial) std::fill_n(to.virial, 9, 0.0);
        for (size_t atom = 0; atom < shares.size(); ++atom) {
            const Share& share = shares[atom];
            if (to.energy) *to.energy += share.energy;
            if (to.atom_energies && atom < owned_count) to.atom_energies[atom] = share.energy;
            if (to.forces) std::copy_n(share.force.begin(), 3, to.forces + 3 * atom);
            if (to.atom_virials) std::copy_n(share.virial.begin(), 9, to.atom_virials + 9 * atom);
            for (size_t k = 0; to.virial && k < 9; ++k) to.virial[k] += share.virial[k];
        }
    }

    void gather_numbers(std::span<const SystemView> systems) {
        numbers_.clear();
        for (const SystemView& system : systems)
            numbers_.insert(numbers_.end(), system.atomic_numbers, system.atomic_numbers + system.atom_count);
    }

    PairTerm term_;
    std::vector<int32_t> numbers_;  // [atom]
    std::vector<Share> shares_;     // [atom]
};

}  // namespace mlff
