// SPDX-License-Identifier: MIT
// Edges and repulsion of one frame.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/system_view.h"
#include "core/threads.h"
#include "neighbors/neighbor_list.h"

namespace mlff::train {

struct FrameGraph {
    std::vector<int32_t> receiver, sender;  // [edge]
    std::vector<int32_t> reverse;           // [edge]: the same pair in the opposite direction
    std::vector<double> vectors;            // [edge][3], receiver to sender, angstrom
};

struct FrameRepulsion {
    double energy = 0;
    std::vector<double> atom_energies;  // [atom]
    std::vector<double> forces;         // [atom][3]
    std::array<double, 9> virial{};     // sum of r (dE/dr)^T over edges
};

// Keeps its buffers. Used by one thread at a time.
class GraphMaker {
public:
    explicit GraphMaker(double cutoff);
    FrameGraph make(const SystemView& system);

private:
    ThreadTeam team_;
    NeighborList list_;
};

// `radius_of` [atom]; empty: no repulsion.
FrameRepulsion frame_repulsion(const SystemView& system, const FrameGraph& graph, const std::vector<double>& radius_of);

double volume_of(const Mat3& cell);  // 0 for a flat one

}  // namespace mlff::train
