// SPDX-License-Identifier: MIT
// A trust meter at work on the CPU.
#pragma once

#include <cstdint>
#include <vector>

#include "core/threads.h"
#include "neighbors/neighbor_list.h"
#include "trust/formulas.h"
#include "trust/meter.h"

namespace mlff {

trust::MeterView view_of(const TrustMeter& meter);

// Writes the components [K] of an atom, and returns the square of (descriptors - center).
double components_of(const trust::MeterView& meter, int element, const float* descriptors, float* components);
double components_of(const trust::MeterView& meter, int element, const double* descriptors, float* components);

class TrustMeasurement {
public:
    // `edges` reach as far as the meter's radius, or as the cutoff of the model if that is less. `descriptors`
    // [atom][D] may be of more atoms than `edges` has; these are not measured. Writes expected_errors [atom], in
    // eV/angstrom, and novelties [atom]; either may be nullptr.
    void measure(const TrustMeter& meter, const int32_t* atomic_numbers, const double* descriptors, const Edges& edges,
                 double* expected_errors, double* novelties, ThreadTeam& team);

    // The same in two steps, for domains: the scores of own atoms, then what their neighbours make of these. Between
    // the steps the caller fills atom_errors() of ghosts.
    void score(const TrustMeter& meter, const int32_t* atomic_numbers, const double* descriptors, int64_t owned_count,
               int64_t atom_count, double* novelties, ThreadTeam& team);
    double* atom_errors() { return atom_errors_.data(); }  // [atom_count]: exp(score)
    void write_expected_errors(const TrustMeter& meter, const Edges& edges, double* expected_errors, ThreadTeam& team);

private:
    std::vector<trust::AtomScore> scores_;  // [own atom]
    std::vector<int> elements_;             // [own atom]
    std::vector<double> atom_errors_;
};

}  // namespace mlff
