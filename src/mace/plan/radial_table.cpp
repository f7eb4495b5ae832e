// SPDX-License-Identifier: MIT
#include "mace/plan/radial_table.h"

#include <vector>

namespace mlff::mace::plan {

double lowest_distance(const RadialEmbedding& radial) {
    const bool has_power = radial.transform == RadialEmbedding::Transform::agnesi ||
                           radial.transform == RadialEmbedding::Transform::soft_2023;
    return has_power ? 0.3 : 0.0;
}

bool depends_on_elements(const Weights& weights, const Interaction& interaction) {
    return weights.radial.transform != RadialEmbedding::Transform::none ||
           interaction.edge_input == Interaction::EdgeInput::elements;
}

template <class Real>
RadialTable<Real> make_radial_table(const EdgeFunctions& functions, std::span<const int> block_widths, double low,
                                    double cutoff, int sender_element, int receiver_element, ThreadTeam& team) {
    const KernelTable<double>& kernels = choose_kernels<double>();
    const SampleRows sample = [&](std::span<const double> distances, double* rows) {
        EdgeFunctions::Pass pass;
        std::vector<EdgePlace> places;
        for (const double distance : distances) places.push_back({distance, sender_element, receiver_element});
        functions.start(pass, places);
        functions.compute(kernels, pass, static_cast<int>(places.size()), rows, nullptr);
    };
    return RadialTable<Real>(sample, block_widths, low, cutoff, team);
}

template RadialTable<float> make_radial_table(const EdgeFunctions&, std::span<const int>, double, double, int, int,
                                              ThreadTeam&);
template RadialTable<double> make_radial_table(const EdgeFunctions&, std::span<const int>, double, double, int, int,
                                               ThreadTeam&);

}  // namespace mlff::mace::plan
