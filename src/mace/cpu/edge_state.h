// SPDX-License-Identifier: MIT
// What one evaluation knows of atoms and edges, and the memory that a worker needs to go over the edges of an atom.
#pragma once

#include <array>
#include <vector>

#include "mace/cpu/layer_plan.h"
#include "neighbors/neighbor_list.h"

namespace mlff::mace::cpu {

inline constexpr int kEdgesPerBatch = 32;  // weighed features of a batch stay in the first cache

// Rows of features, of each atom or, where they depend on nothing else, of each element.
template <class Real>
struct FeatureRows {
    const Real* first = nullptr;
    int stride = 0;
    const int* elements = nullptr;  // [atom]; nullptr: by atom

    const Real* of(int64_t atom) const { return first + (elements ? static_cast<int64_t>(elements[atom]) : atom) * stride; }
};

template <class Real>
struct EdgeState {
    const Edges* edges = nullptr;
    std::vector<int> elements;  // [atom]
    std::vector<int64_t> by_element;  // [edge]: the edges of each atom in the order of their senders' elements
    int harmonic_count = 0;
    Buffer<Real> harmonics, harmonics_gradient;  // [edge][harmonic_count]
    std::vector<double> distance_gradient;       // [edge]

    int element(int64_t atom) const { return elements[static_cast<size_t>(atom)]; }
    int sender_element(int64_t edge) const { return element(edges->sender[edge]); }
    const Real* harmonics_of(int64_t edge) const { return harmonics.data() + edge * harmonic_count; }
    Real* harmonics_gradient_of(int64_t edge) { return harmonics_gradient.data() + edge * harmonic_count; }
};

// Some edges of one atom, and the radial functions there.
template <class Real>
struct EdgeBatch {
    int count = 0;
    std::array<int64_t, kEdgesPerBatch> edge;
    std::array<SplinePoint<Real>, kEdgesPerBatch> point;

    // Exact functions, [edge][columns.count].
    std::array<EdgePlace, kEdgesPerBatch> place;
    EdgeFunctions::Pass pass;
    Buffer<double> values, slopes;
    Buffer<Real> value_rows, slope_rows;
};

// A layer while its messages are computed.
template <class Real>
struct LayerInput {
    const LayerPlan<Real>& plan;
    const KernelTable<Real>& kernels;
    FeatureRows<Real> senders;
    FeatureRows<Real> down;  // where the radial networks see features
};

// Whether the atom receives the messages of its edges or, seen from the other end, sends them.
enum class Role { receiver, sender };

// Sets batch.point for the edges batch.edge of the atom: from the tables or, where there are none or they do not reach, exactly.
template <class Real>
void find_points(const LayerInput<Real>& layer, const EdgeState<Real>& state, int64_t atom, Role role, EdgeBatch<Real>& batch);

}  // namespace mlff::mace::cpu
