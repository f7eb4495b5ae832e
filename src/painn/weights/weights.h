// SPDX-License-Identifier: MIT
// The parameters of a PaiNN model as defined in docs/painn.md, in double precision; matrices [out][in], row-major.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/system_view.h"
#include "formats/json_value.h"
#include "formats/safetensors.h"

namespace mlff::painn {

struct Linear {
    int in_width = 0, out_width = 0;
    std::vector<double> weight;  // [out][in]
    std::vector<double> bias;    // [out], or empty
};

struct Block {
    Linear filter;                          // R -> 3F
    Linear message_hidden, message_output;  // F -> F -> 3F
    Linear mix;                             // F -> 2F: U, V; no bias
    Linear update_hidden, update_output;    // 2F -> F -> 3F
};

struct Weights {
    int hidden = 0, radial_count = 0;
    double cutoff = 0;                    // angstrom
    std::vector<int> atomic_numbers;      // ascending
    std::vector<double> atomic_energies;  // [element], eV
    std::vector<double> scales;           // [element], eV
    std::vector<double> repulsion_radii;  // [element], angstrom, or empty
    std::vector<double> closest;          // [element][element], angstrom, or empty: see functions/near_field.h
    std::vector<double> embedding;        // [element][F]
    std::vector<Block> blocks;
    Linear readout_hidden, readout_output;  // F -> F/2 -> 1
    JsonValue card;                         // as in the file
    int64_t parameter_count = 0;
    DType dtype = DType::float64;  // of the matrices in the file

    int element_of(int atomic_number) const;  // -1 if unknown
    // `closest` for a pair of elements; 0 if there is no limit.
    double closest_of(int element, int other) const {
        return closest.empty()
                   ? 0
                   : closest[static_cast<size_t>(element) * atomic_numbers.size() + static_cast<size_t>(other)];
    }
};

// The element of each atom of a batch. Throws Error{system} that names an atom the model does not know.
void find_elements(const Weights& weights, std::span<const SystemView> systems, std::vector<int>& elements);

inline constexpr double kNormFloor = 1e-8;  // under the square root of the norms of V v

bool looks_like_painn(const Safetensors& file);
// Throws Error{format}; messages begin with `name_for_errors`.
Weights load_weights(const Safetensors& file, const std::string& name_for_errors);

}  // namespace mlff::painn
