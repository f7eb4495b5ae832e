// SPDX-License-Identifier: MIT
// A capability of evaluators: to forecast the memory that a system would need.
#pragma once

#include <cstdint>

namespace mlff {

// Bytes that a system needs on the evaluator's device, without the model.
struct MemoryForecast {
    int64_t least = 0;  // with less memory the system is refused
    int64_t usual = 0;  // what is taken if there is enough: it leaves room for systems that grow a little
};

class MemoryForecasts {
public:
    virtual ~MemoryForecasts() = default;
    // Angstrom. forecast_memory() needs the number of edges within this distance.
    virtual double forecast_radius() const = 0;
    // For energies, forces and virial of one system. Only right for systems of the same elements as the last call.
    virtual MemoryForecast forecast_memory(int64_t atom_count, int64_t edge_count) = 0;
};

}  // namespace mlff
