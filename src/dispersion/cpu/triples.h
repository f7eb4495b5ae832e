// SPDX-License-Identifier: MIT
// Energies of three atoms, gathered by each of them: a third of the energy, the whole force on the atom itself.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "cpu_kernels/kernel_table.h"
#include "dispersion/tables/tables.h"

namespace mlff::dispersion::cpu {

struct TripleNeighbor {
    std::array<double, 3> to{};  // from the atom
    double square = 0;
    int32_t slot = 0;
    double c6 = 0, c6_slope = 0;  // with the atom; derivative by the atom's coordination number
    std::array<double, kMaxReferences> weights{};
};

struct SortedWeights {
    const double* first = nullptr;  // [count][stride]
    int64_t stride = 0;
    size_t count = 0;
};

// The neighbours of one atom.
class TripleScratch {
public:
    void clear() { neighbors_.clear(); }
    // Neighbours of one element. `shares`: as in kernels::DispersionPairs.
    void add(const kernels::DispersionNeighbors<double>& found, int32_t slot, const SortedWeights& weights,
             const double* shares, const double* share_slopes);
    const std::vector<TripleNeighbor>& neighbors() const { return neighbors_; }

private:
    std::vector<TripleNeighbor> neighbors_;
};

void sum_triples(const Tables& tables, int32_t slot, const TripleScratch& near, kernels::DispersionSums<double>& sums);

}  // namespace mlff::dispersion::cpu
