// SPDX-License-Identifier: MIT
#include "dispersion/cpu/triples.h"

#include <cmath>

#include "dispersion/functions/triples.h"
#include "dispersion/tables/units.h"

namespace mlff::dispersion::cpu {
namespace {

// What the reference weights of an atom give for each reference of another element.
class SharesByElement {
public:
    explicit SharesByElement(const Tables& tables)
        : tables_(tables), shares_(tables.elements.size() * kMaxReferences) {}

    // Elements come in runs, so that few are computed twice.
    void begin(const TripleNeighbor& atom) {
        atom_ = &atom;
        last_slot_ = -1;
    }
    double c6_with(const TripleNeighbor& other) {
        double* shares = shares_.data() + static_cast<size_t>(other.slot) * kMaxReferences;
        if (other.slot != last_slot_) {
            last_slot_ = other.slot;
            const double* c6 = tables_.c6_of(atom_->slot, other.slot);
            for (size_t q = 0; q < kMaxReferences; ++q) {
                shares[q] = 0;
                for (size_t p = 0; p < kMaxReferences; ++p) shares[q] += atom_->weights[p] * c6[p * kMaxReferences + q];
            }
        }
        double sum = 0;
        for (size_t q = 0; q < kMaxReferences; ++q) sum += shares[q] * other.weights[q];
        return sum;
    }

private:
    const Tables& tables_;
    std::vector<double> shares_;  // [slot][kMaxReferences]
    const TripleNeighbor* atom_ = nullptr;
    int32_t last_slot_ = -1;
};

Fade<double> fade_at(const Tables& tables, double r) {
    return tables.method.is_smooth ? fade_out(r, kTripleCutoff - kFadeWidth, kTripleCutoff) : Fade<double>{};
}

void add_pull(const std::array<double, 3>& to, double pull, kernels::DispersionSums<double>& sums) {
    constexpr size_t kRow[6] = {0, 1, 2, 1, 0, 0}, kColumn[6] = {0, 1, 2, 2, 2, 1};
    for (size_t k = 0; k < 3; ++k) sums.force[k] += pull * to[k];
    for (size_t k = 0; k < 6; ++k) sums.virial[k] += pull * to[kRow[k]] * to[kColumn[k]];
}

}  // namespace

void TripleScratch::add(const kernels::DispersionNeighbors<double>& found, int32_t slot, const SortedWeights& weights,
                        const double* shares, const double* share_slopes) {
    for (int run = 0; run < found.run_count; ++run)
        for (int32_t atom = found.runs[2 * run]; atom < found.runs[2 * run + 1]; ++atom) {
            TripleNeighbor near;
            near.to = {found.x[atom] - found.center[0], found.y[atom] - found.center[1],
                       found.z[atom] - found.center[2]};
            near.square = near.to[0] * near.to[0] + near.to[1] * near.to[1] + near.to[2] * near.to[2];
            if (!(near.square > found.least_square && near.square < found.cutoff_square)) continue;
            near.slot = slot;
            for (size_t q = 0; q < weights.count; ++q) {
                near.weights[q] = weights.first[static_cast<int64_t>(q) * weights.stride + atom];
                near.c6 += shares[q] * near.weights[q];
                near.c6_slope += share_slopes[q] * near.weights[q];
            }
            neighbors_.push_back(near);
        }
}

void sum_triples(const Tables& tables, int32_t slot, const TripleScratch& near, kernels::DispersionSums<double>& sums) {
    const std::vector<TripleNeighbor>& all = near.neighbors();
    SharesByElement shares(tables);
    const double exponent = tables.triple_exponent();
    for (size_t j = 0; j < all.size(); ++j) {
        const TripleNeighbor& first = all[j];
        shares.begin(first);
        const double first_radius = tables.pair_radius[tables.pair(slot, first.slot)];
        const Fade<double> first_fade = fade_at(tables, std::sqrt(first.square));
        for (size_t k = j + 1; k < all.size(); ++k) {
            const TripleNeighbor& second = all[k];
            const double x = second.to[0] - first.to[0], y = second.to[1] - first.to[1], z = second.to[2] - first.to[2];
            const double between = x * x + y * y + z * z;
            if (!(between < kTripleCutoff * kTripleCutoff && between > kLeastSquare)) continue;
            const double radius = first_radius * tables.pair_radius[tables.pair(slot, second.slot)] *
                                  tables.pair_radius[tables.pair(first.slot, second.slot)];
            TripleValue<double> triple = damped_triple({first.square, second.square, between}, radius, exponent);
            if (tables.method.is_smooth) {
                const Fade<double> second_fade = fade_at(tables, std::sqrt(second.square));
                const double last = fade_at(tables, std::sqrt(between)).value;
                const double all_fades = first_fade.value * second_fade.value * last;
                triple.pull[0] = triple.pull[0] * all_fades +
                                 triple.energy * first_fade.slope * second_fade.value * last / std::sqrt(first.square);
                triple.pull[1] = triple.pull[1] * all_fades +
                                 triple.energy * first_fade.value * second_fade.slope * last / std::sqrt(second.square);
                triple.energy *= all_fades;
            }
            const double c9 = kTripleStrength * std::sqrt(std::abs(first.c6 * second.c6 * shares.c6_with(second)));
            const double energy = c9 * triple.energy;
            sums.energy += energy / 3;
            sums.by_count += 0.5 * energy * (first.c6_slope / first.c6 + second.c6_slope / second.c6);
            add_pull(first.to, c9 * triple.pull[0], sums);
            add_pull(second.to, c9 * triple.pull[1], sums);
        }
    }
}

}  // namespace mlff::dispersion::cpu
