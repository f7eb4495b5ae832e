// SPDX-License-Identifier: MIT
// All numbers that DFT-D3 needs for a set of elements. Slots number the elements. Lengths are in angstrom, energies in
// eV.
#pragma once

#include <cstdint>
#include <vector>

#include "dispersion/functions/damping.h"
#include "dispersion/functions/references.h"
#include "dispersion/tables/functionals.h"

namespace mlff::dispersion {

inline constexpr int kElementCount = 94;

// What is computed.
struct Method {
    Damping damping;
    bool has_triples = false;  // the Axilrod-Teller-Muto term, s9 = 1
    bool is_smooth = false;    // energies of pairs and triples go to zero before the cutoffs, over kFadeWidth

    bool operator==(const Method&) const = default;
};

struct Tables {
    std::vector<int> elements;             // [slot]: atomic number, ascending
    std::vector<int32_t> slot;             // [atomic number]; -1: not in these tables
    std::vector<int32_t> reference_count;  // [slot]
    std::vector<double> reference_counts;  // [slot][kMaxReferences]: coordination numbers of the references
    std::vector<double> c6;                // [slot][slot][kMaxReferences][kMaxReferences]; 0 where there is none
    std::vector<double> covalent_radius;   // [slot], scaled by 4/3: two of them are the reach of count_neighbor()
    std::vector<PairForm<double>> forms;   // [slot][slot]
    std::vector<double> pair_radius;       // [slot][slot]: for triples, scaled by 4/3
    Method method;

    size_t pair(int32_t first, int32_t second) const {
        return static_cast<size_t>(first) * elements.size() + static_cast<size_t>(second);
    }
    const double* c6_of(int32_t first, int32_t second) const {
        return c6.data() + pair(first, second) * kMaxReferences * kMaxReferences;
    }
    const double* references_of(int32_t element) const {
        return reference_counts.data() + static_cast<size_t>(element) * kMaxReferences;
    }
    double reach(int32_t first, int32_t second) const {
        return covalent_radius[static_cast<size_t>(first)] + covalent_radius[static_cast<size_t>(second)];
    }
    int half_exponent() const { return method.damping.alpha / 2; }
    double triple_exponent() const { return (method.damping.alpha + 2) / 3.0; }
};

// `elements`: atomic numbers from 1 to kElementCount, ascending.
Tables make_tables(const std::vector<int>& elements, const Method& method);

}  // namespace mlff::dispersion
