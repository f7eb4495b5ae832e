// SPDX-License-Identifier: MIT
#include "dispersion/reference/evaluator.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.h"
#include "dispersion/functions/coordination.h"
#include "dispersion/functions/triples.h"
#include "dispersion/tables/units.h"
#include "neighbors/cell_grid.h"

namespace mlff::dispersion::reference {
namespace {

// Energies, and derivatives of the total energy.
struct Sums {
    std::vector<double> energies;      // [atom]
    std::vector<double> forces;        // [atom][3]
    std::vector<double> atom_virials;  // [atom][9]
    std::vector<double> by_count;      // [atom]: dE/dn

    explicit Sums(size_t atoms) : energies(atoms), forces(3 * atoms), atom_virials(9 * atoms), by_count(atoms) {}

    // An energy that depends on the vector from atom i to atom j with the gradient `pull` times that vector.
    void add_pull(size_t i, size_t j, const double* vector, double pull) {
        for (size_t a = 0; a < 3; ++a) {
            forces[3 * i + a] += pull * vector[a];
            forces[3 * j + a] -= pull * vector[a];
            for (size_t b = 0; b < 3; ++b)
                for (const size_t atom : {i, j})
                    atom_virials[9 * atom + 3 * a + b] -= 0.5 * pull * vector[a] * vector[b];
        }
    }
};

struct Coefficient {
    double value = 0;
    double by_first = 0, by_second = 0;  // derivatives by the coordination numbers
};

class ReferenceEvaluator : public Evaluator {
public:
    explicit ReferenceEvaluator(std::shared_ptr<const Tables> tables) : tables_(std::move(tables)) {}
    bool needs_edges() const override { return false; }

    void evaluate(const SystemView& system, const Edges&, const Outputs& outputs, ThreadTeam&) override {
        NeighborOptions options;
        options.cutoff = kPairCutoff;
        refuse_far_atoms(system);
        edges_ = brute_force_neighbors(system, options);
        const auto atoms = static_cast<size_t>(system.atom_count);
        slots_.clear();
        for (size_t i = 0; i < atoms; ++i)
            slots_.push_back(tables_->slot[static_cast<size_t>(system.atomic_numbers[i])]);
        for (size_t edge = 0; edge < edges_.sender.size(); ++edge)
            if (edges_.distance[edge] * edges_.distance[edge] < kLeastSquare)
                fail(Status::system, "two atoms are at the same place, one of them is atom ", edges_.sender[edge]);
        weigh(atoms);
        Sums sums(atoms);
        add_pairs(sums);
        if (tables_->method.has_triples) add_triples(sums);
        add_count_gradients(sums);
        write(sums, outputs);
    }

private:
    template <class Visit>
    void for_each_edge(const Visit& visit) const {
        for (size_t i = 0; i < slots_.size(); ++i)
            for (auto e = static_cast<size_t>(edges_.first[i]); e < static_cast<size_t>(edges_.first[i + 1]); ++e)
                visit(i, static_cast<size_t>(edges_.sender[e]), e);
    }

    void weigh(size_t atoms) {
        std::vector<double> counts(atoms);
        for_each_edge([&](size_t i, size_t j, size_t e) {
            if (edges_.distance[e] > kCountCutoff) return;
            counts[i] += count_neighbor(tables_->reach(slots_[i], slots_[j]), edges_.distance[e]).value;
        });
        weights_.assign(atoms * kMaxReferences, 0);
        slopes_.assign(atoms * kMaxReferences, 0);
        for (size_t i = 0; i < atoms; ++i)
            weigh_references(tables_->references_of(slots_[i]),
                             tables_->reference_count[static_cast<size_t>(slots_[i])], counts[i],
                             &weights_[i * kMaxReferences], &slopes_[i * kMaxReferences]);
    }

    Coefficient c6(size_t i, size_t j) const {
        const double* table = tables_->c6_of(slots_[i], slots_[j]);
        Coefficient sum;
        for (size_t p = 0; p < kMaxReferences; ++p)
            for (size_t q = 0; q < kMaxReferences; ++q) {
                const double c = table[p * kMaxReferences + q];
                const size_t at = i * kMaxReferences + p, other = j * kMaxReferences + q;
                sum.value += weights_[at] * c * weights_[other];
                sum.by_first += slopes_[at] * c * weights_[other];
                sum.by_second += weights_[at] * c * slopes_[other];
            }
        return sum;
    }

    // Every pair is in the list from both ends.
    void add_pairs(Sums& sums) const {
        for_each_edge([&](size_t i, size_t j, size_t e) {
            const double r = edges_.distance[e];
            const PairForm<double>& form = tables_->forms[tables_->pair(slots_[i], slots_[j])];
            PairValue<double> pair = tables_->method.damping.kind == DampingKind::bj
                                         ? bj_pair(form, r * r)
                                         : zero_pair(form, tables_->half_exponent(), r * r);
            if (tables_->method.is_smooth) pair = faded(pair, fade_out(r, kPairCutoff - kFadeWidth, kPairCutoff), r);
            const Coefficient c = c6(i, j);
            sums.energies[i] += 0.25 * c.value * pair.energy;
            sums.energies[j] += 0.25 * c.value * pair.energy;
            sums.by_count[i] += 0.5 * c.by_first * pair.energy;
            sums.by_count[j] += 0.5 * c.by_second * pair.energy;
            sums.add_pull(i, j, &edges_.vector[3 * e], 0.5 * c.value * pair.pull);
        });
    }

    // Two edges of an atom make a triple, which is found once at each of its atoms.
    void add_triples(Sums& sums) const {
        for (size_t i = 0; i < slots_.size(); ++i) {
            const auto begin = static_cast<size_t>(edges_.first[i]), end = static_cast<size_t>(edges_.first[i + 1]);
            for (size_t first = begin; first < end; ++first)
                for (size_t second = first + 1; second < end; ++second) add_triple(sums, i, first, second);
        }
    }

    void add_triple(Sums& sums, size_t i, size_t first, size_t second) const {
        const double *to_first = &edges_.vector[3 * first], *to_second = &edges_.vector[3 * second];
        const double between[3] = {to_second[0] - to_first[0], to_second[1] - to_first[1], to_second[2] - to_first[2]};
        const double r[3] = {edges_.distance[first], edges_.distance[second],
                             std::hypot(between[0], between[1], between[2])};
        if (r[0] > kTripleCutoff || r[1] > kTripleCutoff || r[2] > kTripleCutoff) return;
        const auto j = static_cast<size_t>(edges_.sender[first]), k = static_cast<size_t>(edges_.sender[second]);
        const auto radius = [&](size_t a, size_t b) {
            return tables_->pair_radius[tables_->pair(slots_[a], slots_[b])];
        };
        TripleValue<double> triple =
            damped_triple({r[0] * r[0], r[1] * r[1], r[2] * r[2]}, radius(i, j) * radius(i, k) * radius(j, k),
                          tables_->triple_exponent());
        if (tables_->method.is_smooth) fade(triple, r);
        const Coefficient c[3] = {c6(i, j), c6(i, k), c6(j, k)};
        const double c9 =
            kTripleStrength * std::sqrt(std::abs(c[0].value * c[1].value * c[2].value)) / 3;  // found three times
        const double energy = c9 * triple.energy;
        for (const size_t atom : {i, j, k}) sums.energies[atom] += energy / 3;
        sums.add_pull(i, j, to_first, c9 * triple.pull[0]);
        sums.add_pull(i, k, to_second, c9 * triple.pull[1]);
        sums.add_pull(j, k, between, c9 * triple.pull[2]);
        const auto share = [&](double slope, const Coefficient& of) { return 0.5 * energy * slope / of.value; };
        sums.by_count[i] += share(c[0].by_first, c[0]) + share(c[1].by_first, c[1]);
        sums.by_count[j] += share(c[0].by_second, c[0]) + share(c[2].by_first, c[2]);
        sums.by_count[k] += share(c[1].by_second, c[1]) + share(c[2].by_second, c[2]);
    }

    static void fade(TripleValue<double>& triple, const double (&r)[3]) {
        Fade<double> fades[3];
        for (int n = 0; n < 3; ++n) fades[n] = fade_out(r[n], kTripleCutoff - kFadeWidth, kTripleCutoff);
        const double all = fades[0].value * fades[1].value * fades[2].value;
        for (int n = 0; n < 3; ++n)
            triple.pull[n] = triple.pull[n] * all + triple.energy * fades[n].slope / r[n] * fades[(n + 1) % 3].value *
                                                        fades[(n + 2) % 3].value;
        triple.energy *= all;
    }

    void add_count_gradients(Sums& sums) const {
        for_each_edge([&](size_t i, size_t j, size_t e) {
            const double r = edges_.distance[e];
            if (r > kCountCutoff) return;
            const double slope = count_neighbor(tables_->reach(slots_[i], slots_[j]), r).slope;
            sums.add_pull(i, j, &edges_.vector[3 * e], sums.by_count[i] * slope / r);
        });
    }

    static void write(const Sums& sums, const Outputs& to) {
        if (to.energy) {
            *to.energy = 0;
            for (const double energy : sums.energies) *to.energy += energy;
        }
        if (to.virial) {
            std::fill_n(to.virial, 9, 0.0);
            for (size_t i = 0; i < sums.atom_virials.size(); ++i) to.virial[i % 9] += sums.atom_virials[i];
        }
        if (to.atom_energies) std::copy(sums.energies.begin(), sums.energies.end(), to.atom_energies);
        if (to.forces) std::copy(sums.forces.begin(), sums.forces.end(), to.forces);
        if (to.atom_virials) std::copy(sums.atom_virials.begin(), sums.atom_virials.end(), to.atom_virials);
    }

    std::shared_ptr<const Tables> tables_;
    BruteForceEdges edges_;
    std::vector<int32_t> slots_;            // [atom]
    std::vector<double> weights_, slopes_;  // [atom][kMaxReferences]
};

}  // namespace

std::unique_ptr<Evaluator> make_reference_evaluator(std::shared_ptr<const Tables> tables) {
    return std::make_unique<ReferenceEvaluator>(std::move(tables));
}

}  // namespace mlff::dispersion::reference
