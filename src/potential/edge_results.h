// SPDX-License-Identifier: MIT
// Forces and virials from the gradient of the energy by edge vectors: the last stage of every backend that works on
// edges.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "neighbors/neighbor_list.h"
#include "potential/evaluator.h"

namespace mlff {

// The edge vector is x[sender] - x[receiver] + shift, so its gradient acts on the two atoms with opposite signs.
// `gradient`: [edge][3]. The system has the atoms `begin` to `end` of the list.
inline void write_forces(const Edges& edges, const double* gradient, int64_t begin, int64_t end,
                         const Outputs& outputs) {
    double* forces = outputs.forces;
    if (!forces) return;
    std::fill_n(forces, 3 * (end - begin), 0.0);
    for (int64_t atom = begin; atom < end; ++atom)
        for (int64_t edge = edges.first[atom]; edge < edges.first[atom + 1]; ++edge)
            for (int64_t k = 0; k < 3; ++k) {
                forces[3 * (atom - begin) + k] += gradient[3 * edge + k];
                forces[3 * (edges.sender[edge] - begin) + k] -= gradient[3 * edge + k];
            }
}

// virial = -dE/dstrain = -sum over edges of the symmetric part of (vector times gradient). Each atom of an edge gets
// half of its term.
inline void write_virials(const Edges& edges, const double* gradient, int64_t begin, int64_t end,
                          const Outputs& outputs) {
    double *virial = outputs.virial, *atom_virials = outputs.atom_virials;
    if (!virial && !atom_virials) return;
    std::array<double, 9> sum = {};
    if (atom_virials) std::fill_n(atom_virials, 9 * (end - begin), 0.0);
    for (int64_t atom = begin; atom < end; ++atom)
        for (int64_t edge = edges.first[atom]; edge < edges.first[atom + 1]; ++edge) {
            const double *vector = edges.vector + 3 * edge, *by_vector = gradient + 3 * edge;
            for (size_t i = 0; i < 3; ++i)
                for (size_t j = 0; j < 3; ++j) {
                    const double part = -0.5 * (vector[i] * by_vector[j] + vector[j] * by_vector[i]);
                    sum[3 * i + j] += part;
                    if (!atom_virials) continue;
                    const auto k = static_cast<int64_t>(3 * i + j);
                    atom_virials[9 * (atom - begin) + k] += 0.5 * part;
                    atom_virials[9 * (edges.sender[edge] - begin) + k] += 0.5 * part;
                }
        }
    if (virial) std::copy(sum.begin(), sum.end(), virial);
}

}  // namespace mlff
