// SPDX-License-Identifier: MIT
// What one evaluation knows of atoms and edges, and the memory that a worker needs to go over the edges of an atom.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "mace/cpu/plan_names.h"
#include "mace/plan/layer_plan.h"
#include "neighbors/neighbor_list.h"

namespace mlff::mace::cpu {

// Rows of features, of each atom or, where they depend on nothing else, of each element.
template <class Real>
struct FeatureRows {
    const Real* first = nullptr;
    int stride = 0;
    const int* elements = nullptr;  // [atom]; nullptr: by atom

    const Real* of(int64_t atom) const {
        return first + (elements ? static_cast<int64_t>(elements[atom]) : atom) * stride;
    }
};

// An edge of one of several atoms.
struct GroupedEdge {
    int64_t edge;
    int32_t member;  // which of the atoms
};

// The edges of some atoms of one element. An edge needs nearly the same rows of a table as the one before it.
struct EdgeGroup {
    std::span<const GroupedEdge> edges;
    const int64_t* atoms = nullptr;  // [member]
    int element = 0;
};

template <class Real>
struct EdgeState {
    const Edges* edges = nullptr;
    std::vector<int> elements;   // [atom]
    std::vector<int64_t> order;  // [edge]: the edges of each atom by the element of their sender
    std::vector<GroupedEdge>
        grouped;  // the edges of each group of atoms (evaluator.cpp) by that element, and then roughly by length
    Buffer<double> vector_gradient;  // [edge][3]: dE/dvector of the messages of the edge, in either direction, that
                                     // were counted as functions of this vector

    int element(int64_t atom) const { return elements[static_cast<size_t>(atom)]; }
    int sender_element(int64_t edge) const { return element(edges->sender[edge]); }
};

// Some edges between atoms of two elements, and the radial functions there.
template <class Real>
struct EdgeBatch {
    int count = 0;
    std::array<int64_t, kEdgesPerBatch> edge;
    std::array<int32_t, kEdgesPerBatch> member;
    SplinePoints<Real> points;
    alignas(64) std::array<double, kEdgesPerBatch> distance;
    alignas(64) std::array<double, 3 * kEdgesPerBatch> direction;  // [x, y, z][edge], from sender to receiver
    Buffer<Real> harmonics, harmonics_gradient;                    // [harmonic][kEdgesPerBatch]
    alignas(64) std::array<Real, kEdgesPerBatch> slopes;           // [edge]: dE/ddistance

    Vec3 direction_of(size_t e) const {
        return {direction[e], direction[kEdgesPerBatch + e], direction[2 * kEdgesPerBatch + e]};
    }

    // Exact functions: [edge][columns.count], and as a table that has an interval for each edge.
    std::vector<EdgePlace> places;
    EdgeFunctions::Pass pass;
    Buffer<double> exact_values, exact_slopes;
    Buffer<Real> table;
};

// A layer while its messages are computed.
template <class Real>
struct LayerInput {
    const LayerPlan<Real>& plan;
    const KernelTable<Real>& kernels;
    const KernelTable<double>& exact_kernels;  // of functions that are evaluated exactly
    FeatureRows<Real> senders;
    FeatureRows<Real> down;  // where the radial networks see features
};

// Whether atoms receive the messages of their edges or, seen from the other end, send them.
enum class Role { receiver, sender };

// What the edges of a batch have in common: the elements of their own atoms and of those at the other end.
struct BatchElements {
    int own, other;
};

// Sets batch.distance, and batch.points for the edges batch.edge: from a table or, where there is none or it does not
// reach, exactly.
template <class Real>
void find_points(const LayerInput<Real>& layer, const EdgeState<Real>& state, BatchElements elements,
                 const int64_t* atoms, Role role, EdgeBatch<Real>& batch);

// Sets batch.direction and batch.harmonics: those of the edges or, where their atoms send, of the opposite edges.
template <class Real>
void compute_harmonics(const LayerInput<Real>& layer, const EdgeState<Real>& state, Role role, EdgeBatch<Real>& batch);
// Sets gradients to zero, which are then added to.
template <class Real>
void start_gradients(EdgeBatch<Real>& batch);
// From batch.harmonics_gradient and batch.slopes to the gradients by the edges' vectors.
template <class Real>
void add_vector_gradients(const LayerInput<Real>& layer, Role role, EdgeBatch<Real>& batch, EdgeState<Real>& state);

}  // namespace mlff::mace::cpu
