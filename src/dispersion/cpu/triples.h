// SPDX-License-Identifier: MIT
// Energies of three atoms, gathered by each of them: a third of the energy, the whole force on the atom itself.
//
// Of a triple of atoms i, j, k the formula (dispersion/functions/triples.h) is a product of what depends on the pair
// ij, on the pair ik and on the pair jk, but for the angles. The first two are computed once for each neighbour.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "cpu_kernels/kernel_table.h"
#include "dispersion/tables/tables.h"

namespace mlff::dispersion::cpu {

struct SortedWeights {
    const double* first = nullptr;  // [count][stride]
    int64_t stride = 0;
    size_t count = 0;
};

// The neighbours of one atom, one element after the other. Numbers are those of the pair with the atom.
class TripleNeighbors {
public:
    explicit TripleNeighbors(const Tables& tables) : tables_(&tables) {}

    void begin(int32_t slot);  // of the atom
    // Neighbours of one element. `shares`: as in kernels::DispersionPairs.
    void add(const kernels::DispersionNeighbors<double>& found, int32_t slot, const SortedWeights& weights,
             const double* shares, const double* share_slopes);
    void sum(kernels::DispersionSums<double>& sums);

private:
    // Neighbours begin ... end - 1 are of this element.
    struct Run {
        int32_t slot = 0;
        size_t begin = 0, end = 0;
    };

    size_t count() const { return square_.size(); }
    void add_neighbor(const std::array<double, 3>& to, double square, double c6, double c6_slope, int32_t slot);
    void add_triples(size_t first, int32_t first_slot, const Run& run, kernels::DispersionSums<double>& sums);
    void find_distances(size_t first, size_t begin, size_t end, double radius_square);

    const Tables* tables_;
    int32_t slot_ = 0;
    std::vector<Run> runs_;
    std::array<std::vector<double>, 3> to_;
    std::vector<double> square_, inverse_, cube_;  // r^2, r^-2, r^-3
    std::vector<double> closeness_;                // (R / r)^exponent
    std::vector<double> root_, log_slope_;         // of C6: square root; derivative of its logarithm by n
    std::vector<double> fade_, fade_pull_;         // fade and its slope / r
    std::vector<double> pull_;                     // sums over triples
    std::vector<double> weights_;                  // [neighbour][kMaxReferences]
    std::vector<double> between_, ratio_;          // of one neighbour and others: r^2; R^2 / r^2, then its cube root
};

}  // namespace mlff::dispersion::cpu
