// SPDX-License-Identifier: MIT
#include "tools/trust/samples.h"

#include <cmath>

#include "core/error.h"
#include "neighbors/neighbor_list.h"

namespace mlff::trust {
namespace {

const std::vector<double>& labels_of(const Frame& frame) {
    const AtomColumn* column = frame.find_column("forces");
    const auto* labels = column && column->width == 3 ? std::get_if<std::vector<double>>(&column->values) : nullptr;
    if (!labels) fail(Status::format, "no column forces:R:3 with the true forces");
    for (size_t i = 0; i < labels->size(); ++i)
        if (!std::isfinite((*labels)[i])) fail(Status::format, "the force on atom ", i / 3, " is not finite");
    return *labels;
}

}  // namespace

void add_frame(Samples& samples, Session& session, const Frame& frame, int32_t group, bool needs_labels) {
    const SystemView system = frame.view();
    const auto atoms = static_cast<size_t>(system.atom_count);
    const ModelSummary& summary = session.model().summary();
    std::vector<double> forces(3 * atoms), descriptors(atoms * static_cast<size_t>(summary.descriptor_count));
    Results results;
    results.outputs.forces = forces.data();
    results.outputs.descriptors = descriptors.data();
    session.evaluate({&system, 1}, {&results, 1});

    NeighborOptions options;
    options.cutoff = summary.cutoff;
    NeighborList neighbors(options);
    neighbors.update(system, session.team());
    const Edges& edges = neighbors.edges();
    const int64_t begin = samples.atom_count();
    samples.descriptor_count = summary.descriptor_count;
    samples.descriptors.insert(samples.descriptors.end(), descriptors.begin(), descriptors.end());
    const std::vector<double>* labels = needs_labels ? &labels_of(frame) : nullptr;
    for (size_t atom = 0; atom < atoms; ++atom) {
        samples.atomic_numbers.push_back(frame.atomic_numbers[atom]);
        samples.groups.push_back(group);
        const double* f = forces.data() + 3 * atom;
        const double* l = labels ? labels->data() + 3 * atom : f;
        samples.errors.push_back(std::hypot(f[0] - l[0], f[1] - l[1], f[2] - l[2]));
        for (int64_t edge = edges.first[atom]; edge < edges.first[atom + 1]; ++edge) {
            samples.neighbors.push_back(static_cast<int32_t>(begin + edges.sender[edge]));
            samples.distances.push_back(edges.distance[edge]);
        }
        samples.first.push_back(static_cast<int64_t>(samples.neighbors.size()));
    }
}

}  // namespace mlff::trust
