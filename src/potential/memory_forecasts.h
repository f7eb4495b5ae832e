// SPDX-License-Identifier: MIT
// A capability of evaluators: what memory a system would take, before it is there.
#pragma once

#include <cstdint>

namespace mlff {

// What a system takes on the evaluator's device beside the model, in bytes.
struct MemoryForecast {
    int64_t least = 0;  // with less it is refused
    int64_t usual = 0;  // where there is enough: with room for systems that grow a little
};

class MemoryForecasts {
public:
    virtual ~MemoryForecasts() = default;
    // Angstrom: forecast_memory() wants the number of pairs within this distance.
    virtual double forecast_radius() const = 0;
    // For energies, forces and virial of one system. Right for systems of the elements of the last call.
    virtual MemoryForecast forecast_memory(int64_t atom_count, int64_t edge_count) = 0;
};

}  // namespace mlff
