// SPDX-License-Identifier: MIT
#include "equivariant/plan/radial_table.h"

#include <vector>

namespace mlff::equivariant {

double lowest_distance(const RadialEmbedding& radial) {
    const bool has_power = radial.transform == RadialEmbedding::Transform::agnesi ||
                           radial.transform == RadialEmbedding::Transform::soft_2023;
    return has_power ? 0.3 : 0.0;
}

bool depends_on_elements(const EdgeModel& model, const EdgeMessages& messages) {
    return model.radial.transform != RadialEmbedding::Transform::none ||
           messages.edge_input == EdgeMessages::EdgeInput::elements;
}

template <class Real>
RadialTable<Real> make_radial_table(const EdgeFunctions& functions, std::span<const int> block_widths, double low,
                                    double cutoff, int sender_element, int receiver_element, ThreadTeam& team,
                                    double error_share) {
    const KernelTable<double>& kernels = choose_kernels<double>();
    const auto sample = [&](bool is_above_onset) -> SampleRows {
        return [&, is_above_onset](std::span<const double> distances, double* rows) {
            EdgeFunctions::Pass pass;
            std::vector<EdgePlace> places;
            for (const double distance : distances)
                places.push_back({distance, sender_element, receiver_element, is_above_onset});
            functions.start(pass, places);
            functions.compute(kernels, pass, static_cast<int>(places.size()), rows, nullptr);
        };
    };
    const SplineBreak onset = {functions.onset(), sample(true)};
    return RadialTable<Real>(sample(onset.distance <= low), onset, block_widths, low, cutoff, team, error_share);
}

template RadialTable<float> make_radial_table(const EdgeFunctions&, std::span<const int>, double, double, int, int,
                                              ThreadTeam&, double);
template RadialTable<double> make_radial_table(const EdgeFunctions&, std::span<const int>, double, double, int, int,
                                               ThreadTeam&, double);

}  // namespace mlff::equivariant
