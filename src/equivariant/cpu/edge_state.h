// SPDX-License-Identifier: MIT
// Atoms and edges of one evaluation, and batches of edges with their radial functions and harmonics.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "equivariant/plan/convolution_plan.h"
#include "neighbors/neighbor_list.h"

namespace mlff::equivariant {

// Features of each atom or, if they depend on nothing else, of each element.
template <class Real>
struct FeatureRows {
    const Real* first = nullptr;
    int stride = 0;
    const int* elements = nullptr;  // [atom]; nullptr: by atom

    const Real* of(int64_t atom) const {
        return first + (elements ? static_cast<int64_t>(elements[atom]) : atom) * stride;
    }
};

struct GroupedEdge {
    int64_t edge;
    int32_t member;  // index in EdgeGroup::atoms
};

// The edges of some atoms of one element, sorted so that successive edges read nearly the same rows of a table.
struct EdgeGroup {
    std::span<const GroupedEdge> edges;
    const int64_t* atoms = nullptr;  // [member]
    int element = 0;
};

struct EdgeState {
    const Edges* edges = nullptr;
    std::vector<int> elements;   // [atom]
    std::vector<int64_t> order;  // the edges of each atom, sorted by the element of the sender
    // The edges of each group of atoms (atom_tiles.h), sorted by the element of the sender, then roughly by length.
    std::vector<GroupedEdge> grouped;
    // [edge][3]: dE/dvector. A message, in either direction, adds to only one of an edge and its reverse.
    Buffer<double> vector_gradient;

    int element(int64_t atom) const { return elements[static_cast<size_t>(atom)]; }
    int sender_element(int64_t edge) const { return element(edges->sender[edge]); }
};

// Up to kEdgesPerBatch edges between the same two elements, with their radial functions and harmonics.
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

    // For exact functions: values [edge][columns.count], and the table made of them.
    std::vector<EdgePlace> places;
    EdgeFunctions::Pass pass;
    Buffer<double> exact_values, exact_slopes;
    Buffer<Real> table;
};

// The input of a layer's messages.
template <class Real>
struct LayerInput {
    const ConvolutionPlan<Real>& plan;
    const KernelTable<Real>& kernels;
    const KernelTable<double>& exact_kernels;  // for functions that are evaluated exactly
    FeatureRows<Real> senders;
    FeatureRows<Real> down;  // if the radial networks take features
};

// Whether the atoms of a group receive the messages along their edges, or send them along the reverse edges.
enum class Role { receiver, sender };

// The elements of a batch: that of the atoms of the group, and that of the atoms at the other end.
struct BatchElements {
    int own, other;
};

// Sets batch.distance and batch.points for the edges batch.edge. Uses a table or, if there is none or an edge is too
// short for it, exact functions.
template <class Real>
void find_points(const LayerInput<Real>& layer, const EdgeState& state, BatchElements elements, const int64_t* atoms,
                 Role role, EdgeBatch<Real>& batch);

// Sets batch.direction and batch.harmonics, for Role::sender those of the reverse edges.
template <class Real>
void compute_harmonics(const LayerInput<Real>& layer, const EdgeState& state, Role role, EdgeBatch<Real>& batch);
// Sets the gradients of the batch to zero.
template <class Real>
void start_gradients(EdgeBatch<Real>& batch);
// Adds batch.harmonics_gradient and batch.slopes to state.vector_gradient.
template <class Real>
void add_vector_gradients(const LayerInput<Real>& layer, Role role, EdgeBatch<Real>& batch, EdgeState& state);

}  // namespace mlff::equivariant
