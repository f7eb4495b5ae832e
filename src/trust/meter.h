// SPDX-License-Identifier: MIT
// A trust meter: what the training of a model has seen, and which force errors it makes. It reads the last features of
// the atoms (descriptors) and says for each atom how far it is from the training atoms, and which error its force
// probably has. It was fitted to one model file; docs/trust.md has the formulas.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "core/elements.h"
#include "formats/json_value.h"
#include "formats/safetensors.h"

namespace mlff {

struct TrustMeter {
    int descriptor_count = 0;  // D: numbers for each atom that it reads
    int component_count = 0;   // K: of these, directions in which training atoms differ most
    double radius = 0;         // angstrom, of the surroundings whose errors matter too

    std::vector<int> elements;      // ascending; the arrays over elements have their order
    std::vector<float> centers;     // [element][D]: mean of the training atoms
    std::vector<float> directions;  // [D][K]: descriptors minus center -> components with variance 1
    std::vector<double> variances;  // [K]: of the components before they were divided
    double rest_variance = 0;       // of what the components leave out
    std::vector<double> limits;     // [element]: square of the distance that few training atoms exceed

    // The logarithm of the expected error (eV/angstrom) from the atom itself, and from that of its surroundings.
    std::vector<double> offsets;    // [element]
    std::vector<double> linear;     // [K]
    std::vector<double> quadratic;  // [K (K + 1) / 2]: pairs (i, j) with j >= i
    double rest_weight = 0;
    double lowest_score = 0, highest_score = 0;  // the score of an atom stays within them
    double own_weight = 0, neighbor_weight = 0, count_weight = 0;
    std::vector<double> final_offsets;  // [element]
    double outside_error = 0;  // eV/angstrom: at least this is expected of an atom that is unlike those of training
    double alarm_error = 0;    // eV/angstrom: an atom with a larger expected error is outside; see fit_trust_meter

    std::string model_fingerprint;  // of the model that it was fitted to; see fingerprint_of_model
    std::string head;               // the head whose errors it knows; "": the model has only one
    JsonValue card;                 // how well it did on frames that it was not fitted to, for `mlff model info`

    int element_of(int atomic_number) const {  // -1: not seen
        const auto found = std::lower_bound(elements.begin(), elements.end(), atomic_number);
        return found != elements.end() && *found == atomic_number ? static_cast<int>(found - elements.begin()) : -1;
    }
};

// Throws Error{format}; messages begin with `name_for_errors`. All numbers are finite afterwards, and sizes agree.
TrustMeter read_trust_meter(const Safetensors& file, const std::string& name_for_errors);
void write_trust_meter(const std::string& path, const TrustMeter& meter);  // throws Error{file}

// What a meter knows a model file by: SHA-256 of its size, its first and its last 256 KiB.
std::string fingerprint_of_model(Bytes file);

}  // namespace mlff
