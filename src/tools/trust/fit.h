// SPDX-License-Identifier: MIT
// Fits a trust meter, and judges one. docs/trust.md has the formulas.
#pragma once

#include "tools/trust/samples.h"
#include "trust/meter.h"

namespace mlff::trust {

// `seen`: atoms like those of training; `labelled`: atoms with errors that the model makes on frames it has not seen.
// Throws Error{format} if there are too few. Leaves model_fingerprint and card empty.
TrustMeter fit_trust_meter(const Samples& seen, const Samples& labelled, double radius);

// How well expected errors order and match true ones.
struct Judgement {
    int64_t atom_count = 0;
    double rank_correlation = 0;  // Spearman
    double worst_flagged = 0;     // share of the worst tenth of the atoms whose expected error is above the alarm
    double false_alarms = 0;      // share of the other atoms whose expected error is above the alarm
    double outside = 0;           // share of all atoms that are unlike anything in training
    double best_flagged = 0;      // share of the worst tenth that is flagged where the alarm gives 10 % false alarms
    struct Bin {
        double expected = 0, found = 0;  // mean over a tenth of the atoms, eV/angstrom
    };
    std::vector<Bin> bins;  // ascending by expected error
};
Judgement judge(const TrustMeter& meter, const Samples& samples);
JsonValue to_json(const Judgement& judgement);

}  // namespace mlff::trust
