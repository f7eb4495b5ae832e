// SPDX-License-Identifier: MIT
#include "equivariant/reference/edge_data.h"

#include "core/parallel.h"
#include "equivariant/radial_basis.h"
#include "equivariant/spherical_harmonics.h"

namespace mlff {
namespace {

Vec3 vector_to_receiver(const Edges& edges, int64_t edge) {
    const double* vector = edges.vector + 3 * edge;
    return {-vector[0], -vector[1], -vector[2]};
}

}  // namespace

void compute_edges(const EdgeModel& model, const Edges& edges, const int* elements, EdgeData& data, ThreadTeam& team) {
    const auto edge_count = static_cast<size_t>(edges.edge_count);
    data.list = &edges;
    data.elements = elements;
    data.harmonic_count = static_cast<size_t>(harmonic_count(model.max_degree));
    data.basis_count = static_cast<size_t>(model.radial.basis_count);
    index_by_sender(edges, data);
    data.harmonics.resize(edge_count * data.harmonic_count);
    data.basis.resize(edge_count * data.basis_count);
    data.cutoff.resize(edge_count);
    data.harmonics_gradient.assign(data.harmonics.size(), 0.0);
    data.basis_gradient.assign(data.basis.size(), 0.0);
    data.cutoff_gradient.assign(edge_count, 0.0);
    data.distance_gradient.assign(edge_count, 0.0);
    for_each_atom(team, edges.atom_count, [&](int64_t atom) {
        for (int64_t edge = edges.first[atom]; edge < edges.first[atom + 1]; ++edge) {
            const auto e = static_cast<size_t>(edge);
            const double r = edges.distance[edge];
            const Vec3 v = vector_to_receiver(edges, edge);
            compute_harmonics(model.max_degree, {v[0] / r, v[1] / r, v[2] / r},
                              &data.harmonics[e * data.harmonic_count]);
            compute_radial(model.radial, elements[edges.sender[edge]], elements[atom], r,
                           &data.basis[e * data.basis_count], &data.cutoff[e]);
        }
    });
}

void reverse_edges(const EdgeModel& model, const EdgeData& data, std::vector<double>& vector_gradient,
                   ThreadTeam& team) {
    const Edges& edges = *data.list;
    vector_gradient.assign(static_cast<size_t>(edges.edge_count) * 3, 0.0);
    for_each_atom(team, edges.atom_count, [&](int64_t atom) {
        std::vector<double> harmonics(data.harmonic_count);
        std::vector<Vec3> slopes(data.harmonic_count);
        for (int64_t edge = edges.first[atom]; edge < edges.first[atom + 1]; ++edge) {
            const auto e = static_cast<size_t>(edge);
            const double r = edges.distance[edge];
            const Vec3 v = vector_to_receiver(edges, edge);
            compute_harmonics_and_gradients(model.max_degree, v, harmonics.data(), slopes.data());
            const double slope = data.distance_gradient[e] +
                                 reverse_radial(model.radial, data.elements[edges.sender[edge]], data.elements[atom], r,
                                                &data.basis_gradient[e * data.basis_count], data.cutoff_gradient[e]);
            for (size_t k = 0; k < 3; ++k) {
                double sum = slope * v[k] / r;
                for (size_t lm = 0; lm < data.harmonic_count; ++lm)
                    sum += data.harmonics_gradient[e * data.harmonic_count + lm] * slopes[lm][k];
                vector_gradient[e * 3 + k] = -sum;
            }
        }
    });
}

}  // namespace mlff
