// SPDX-License-Identifier: MIT
#include "trust/measure.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "core/parallel.h"

namespace mlff {

trust::MeterView view_of(const TrustMeter& meter) {
    trust::MeterView view;
    view.descriptor_count = meter.descriptor_count;
    view.component_count = meter.component_count;
    view.centers = meter.centers.data();
    view.directions = meter.directions.data();
    view.variances = meter.variances.data();
    view.limits = meter.limits.data();
    view.offsets = meter.offsets.data();
    view.linear = meter.linear.data();
    view.quadratic = meter.quadratic.data();
    view.final_offsets = meter.final_offsets.data();
    view.rest_variance = meter.rest_variance;
    view.rest_weight = meter.rest_weight;
    view.lowest_score = meter.lowest_score;
    view.highest_score = meter.highest_score;
    view.own_weight = meter.own_weight;
    view.neighbor_weight = meter.neighbor_weight;
    view.count_weight = meter.count_weight;
    view.outside_error = meter.outside_error;
    view.alarm_error = meter.alarm_error;
    view.radius = meter.radius;
    return view;
}

namespace {

// `count` is known to the compiler where it is kMostComponents, as in nearly all meters: the sums stay in registers.
template <class Real, class Count>
double find_components(const trust::MeterView& meter, int element, const Real* descriptors, float* components,
                       Count count) {
    float sums[trust::kMostComponents] = {};
    double squared_length = 0;
    const float* center = meter.centers + static_cast<int64_t>(element) * meter.descriptor_count;
    const float* direction = meter.directions;
    for (int d = 0; d < meter.descriptor_count; ++d, direction += count) {
        const float difference = static_cast<float>(descriptors[d]) - center[d];
        squared_length += static_cast<double>(difference) * difference;
        for (int k = 0; k < count; ++k) sums[k] += direction[k] * difference;
    }
    std::copy_n(sums, static_cast<int>(count), components);
    return squared_length;
}
template <class Real>
double find_components(const trust::MeterView& meter, int element, const Real* descriptors, float* components) {
    if (meter.component_count == trust::kMostComponents)
        return find_components(meter, element, descriptors, components,
                               std::integral_constant<int, trust::kMostComponents>());
    return find_components(meter, element, descriptors, components, meter.component_count);
}

trust::AtomScore score_atom(const trust::MeterView& meter, int element, const double* descriptors) {
    if (element < 0) return unseen_score(meter);
    float components[trust::kMostComponents];
    const double squared_length = find_components(meter, element, descriptors, components);
    double rows[trust::kMostComponents];
    std::copy_n(meter.linear, meter.component_count, rows);
    for (int i = 0; i < meter.component_count; ++i) {
        const double* const pairs = pairs_of(meter, i);
        const double component = trust::limited(components[i]);
        for (int k = i; k < meter.component_count; ++k) rows[k] += pairs[k] * component;
    }
    trust::ScoreSums sums;
    for (int k = 0; k < meter.component_count; ++k) add_component(meter, k, components[k], rows[k], sums);
    return score_of(meter, element, sums, squared_length);
}

}  // namespace

double components_of(const trust::MeterView& meter, int element, const float* descriptors, float* components) {
    return find_components(meter, element, descriptors, components);
}
double components_of(const trust::MeterView& meter, int element, const double* descriptors, float* components) {
    return find_components(meter, element, descriptors, components);
}

void TrustMeasurement::measure(const TrustMeter& meter, const int32_t* atomic_numbers, const double* descriptors,
                               const Edges& edges, double* expected_errors, double* novelties, ThreadTeam& team) {
    score(meter, atomic_numbers, descriptors, edges.atom_count, edges.atom_count, novelties, team);
    if (expected_errors) write_expected_errors(meter, edges, expected_errors, team);
}

void TrustMeasurement::score(const TrustMeter& meter, const int32_t* atomic_numbers, const double* descriptors,
                             int64_t owned_count, int64_t atom_count, double* novelties, ThreadTeam& team) {
    const trust::MeterView view = view_of(meter);
    scores_.resize(static_cast<size_t>(owned_count));
    elements_.resize(static_cast<size_t>(owned_count));
    atom_errors_.resize(static_cast<size_t>(atom_count));
    for_each_atom(team, owned_count, [&](int64_t atom) {
        const auto a = static_cast<size_t>(atom);
        elements_[a] = meter.element_of(atomic_numbers[atom]);
        scores_[a] = score_atom(view, elements_[a], descriptors + atom * meter.descriptor_count);
        atom_errors_[a] = std::exp(scores_[a].score);
        if (novelties) novelties[atom] = scores_[a].novelty;
    });
}

void TrustMeasurement::write_expected_errors(const TrustMeter& meter, const Edges& edges, double* expected_errors,
                                             ThreadTeam& team) {
    const trust::MeterView view = view_of(meter);
    for_each_atom(team, static_cast<int64_t>(scores_.size()), [&](int64_t atom) {
        const auto a = static_cast<size_t>(atom);
        double weight = 0, weighted = 0;
        for (int64_t edge = edges.first[atom]; edge < edges.first[atom + 1]; ++edge) {
            if (!(edges.distance[edge] < view.radius)) continue;
            const double w = trust::weight_at(edges.distance[edge], view.radius);
            weight += w;
            weighted += w * atom_errors_[static_cast<size_t>(edges.sender[edge])];
        }
        expected_errors[atom] = trust::expected_error(view, elements_[a], scores_[a], weight, weighted);
    });
}

}  // namespace mlff
