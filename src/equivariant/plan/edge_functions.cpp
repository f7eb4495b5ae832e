// SPDX-License-Identifier: MIT
#include "equivariant/plan/edge_functions.h"

#include <algorithm>
#include <cmath>

namespace mlff::equivariant {
namespace {

// The factor of all weights of a path, times r^power.
ValueAndSlope with_distance_power(const Convolution::Path& path, double r, const ValueAndSlope& factor) {
    if (path.distance_power == 0) return factor;
    const double below = std::pow(r, path.distance_power - 1);
    return {factor.value * below * r, factor.slope * below * r + factor.value * path.distance_power * below};
}

void add_density(const EdgeMessages& messages, RadialColumns& columns) {
    if (!messages.density_network) return;
    columns.density = columns.count;
    columns.widths.push_back(kRowPadding);
    columns.count += kRowPadding;
}

}  // namespace

bool ends_in_linear_layer(const DenseNetwork& network) {
    const DenseLayer& last = network.layers.back();
    return network.layers.size() > 1 && last.activation.kind == Activation::Kind::identity && last.norm_scale.empty();
}

RadialColumns columns_of_weights(const EdgeMessages& messages) {
    RadialColumns columns;
    for (const Convolution::Path& path : messages.convolution.paths) {
        columns.path.push_back(columns.count);
        columns.widths.push_back(padded(messages.convolution.in[path.in_block].multiplicity));
        columns.count += columns.widths.back();
    }
    add_density(messages, columns);
    return columns;
}

RadialColumns columns_of_hidden(const EdgeMessages& messages) {
    RadialColumns columns;
    columns.kind = RadialColumns::Kind::hidden;
    columns.hidden_count = messages.radial_network.layers.back().in_width;
    columns.has_constant = !messages.radial_network.layers.back().bias.empty();
    columns.count = padded(columns.hidden_count + (columns.has_constant ? 1 : 0));
    columns.widths.push_back(columns.count);
    add_density(messages, columns);
    return columns;
}

EdgeFunctions::EdgeFunctions(const EdgeModel& model, const EdgeMessages& messages, const RadialColumns& columns)
    : messages_(messages),
      columns_(columns),
      radial_(model.radial),
      network_(messages.radial_network,
               messages.radial_network.layers.size() - (columns.kind == RadialColumns::Kind::hidden ? 1 : 0)) {
    if (messages.density_network) density_.emplace(*messages.density_network, messages.density_network->layers.size());
}

void EdgeFunctions::start(Pass& pass, std::span<const EdgePlace> edges) const {
    network_.start(pass.radial, static_cast<int>(edges.size()));
    pass.outside.assign(edges.size(), {1, 0});
    pass.distances.resize(edges.size());
    for (size_t e = 0; e < edges.size(); ++e) {
        const double r = std::abs(edges[e].distance) < 1e-9 ? 1e-9 : edges[e].distance;
        pass.distances[e] = r;
        const auto [cutoff, cutoff_slope] = smooth_cutoff(radial_.cutoff, edges[e].is_above_onset, r);
        bare_basis(radial_, edges[e].sender_element, edges[e].receiver_element, r, pass.basis);
        double* input = pass.radial.input.data() + e * static_cast<size_t>(network_.in_stride());
        double* slope = pass.radial.input_slope.data() + e * static_cast<size_t>(network_.in_stride());
        if (!radial_.cutoff_in_basis) pass.outside[e] = {cutoff, cutoff_slope};
        for (size_t n = 0; n < pass.basis.size(); ++n) {
            const auto [value, by_r] = pass.basis[n];
            input[n] = radial_.cutoff_in_basis ? value * cutoff : value;
            slope[n] = radial_.cutoff_in_basis ? by_r * cutoff + value * cutoff_slope : by_r;
        }
        if (messages_.edge_input == EdgeMessages::EdgeInput::elements) {
            const auto width = static_cast<size_t>(messages_.edge_width);
            double* at = input + pass.basis.size();
            std::copy_n(messages_.sender_table.data() + static_cast<size_t>(edges[e].sender_element) * width, width,
                        at);
            std::copy_n(messages_.receiver_table.data() + static_cast<size_t>(edges[e].receiver_element) * width, width,
                        at + width);
        }
    }
}

double* EdgeFunctions::feature_input(Pass& pass, int edge) const {
    return pass.radial.input.data() + edge * network_.in_stride() + radial_.basis_count;
}

void EdgeFunctions::compute(const KernelTable<double>& kernels, Pass& pass, int edge_count, double* values,
                            double* slopes) const {
    network_.compute(kernels, pass.radial, edge_count, slopes != nullptr);
    if (density_) {
        density_->start(pass.density, edge_count);
        std::copy(pass.radial.input.begin(), pass.radial.input.end(), pass.density.input.begin());
        std::copy(pass.radial.input_slope.begin(), pass.radial.input_slope.end(), pass.density.input_slope.begin());
        density_->compute(kernels, pass.density, edge_count, slopes != nullptr);
    }
    const auto width = static_cast<size_t>(columns_.count);
    for (size_t e = 0; e < static_cast<size_t>(edge_count); ++e) {
        double* value = values + e * width;
        double* slope = slopes ? slopes + e * width : nullptr;
        std::fill_n(value, width, 0.0);
        if (slope) std::fill_n(slope, width, 0.0);
        ValueAndSlope outside = pass.outside[e];
        const auto put = [&](size_t column, double f, double f_slope) {
            value[column] = outside.value * f;
            if (slope) slope[column] = outside.value * f_slope + outside.slope * f;
        };
        const BatchedPass::Layer& last = pass.radial.layers.back();
        const size_t at = e * static_cast<size_t>(network_.out_stride());
        const auto put_output = [&](size_t column, size_t i) {
            put(column, last.output[at + i], slope ? last.output_slope[at + i] : 0);
        };
        for (size_t p = 0; p < columns_.path.size(); ++p) {
            const Convolution::Path& path = messages_.convolution.paths[p];
            const auto copies = static_cast<size_t>(messages_.convolution.in[path.in_block].multiplicity);
            outside = with_distance_power(path, pass.distances[e], pass.outside[e]);
            for (size_t u = 0; u < copies; ++u)
                put_output(static_cast<size_t>(columns_.path[p]) + u, static_cast<size_t>(path.weight_offset) + u);
        }
        outside = pass.outside[e];
        for (size_t h = 0; h < static_cast<size_t>(columns_.hidden_count); ++h) put_output(h, h);
        if (columns_.has_constant) put(static_cast<size_t>(columns_.hidden_count), 1, 0);
        if (columns_.density >= 0) {  // d tanh(x^2)/dx = 2 x (1 - tanh(x^2)^2)
            const BatchedPass::Layer& density = pass.density.layers.back();
            const size_t row = e * static_cast<size_t>(density_->out_stride());
            const double x = density.output[row], t = std::tanh(x * x);
            put(static_cast<size_t>(columns_.density), t, slope ? 2 * x * (1 - t * t) * density.output_slope[row] : 0);
        }
    }
}

const double* EdgeFunctions::reverse_features(const KernelTable<double>& kernels, Pass& pass, int edge_count,
                                              const double* values_gradient, int* stride) const {
    const auto out_stride = static_cast<size_t>(network_.out_stride());
    pass.gradient.resize_discard(static_cast<size_t>(edge_count) * out_stride);
    std::fill(pass.gradient.begin(), pass.gradient.end(), 0.0);
    for (size_t e = 0; e < static_cast<size_t>(edge_count); ++e)
        for (size_t p = 0; p < columns_.path.size(); ++p) {
            const Convolution::Path& path = messages_.convolution.paths[p];
            const auto copies = static_cast<size_t>(messages_.convolution.in[path.in_block].multiplicity);
            for (size_t u = 0; u < copies; ++u)
                pass.gradient[e * out_stride + static_cast<size_t>(path.weight_offset) + u] =
                    with_distance_power(path, pass.distances[e], pass.outside[e]).value *
                    values_gradient[e * static_cast<size_t>(columns_.count) + static_cast<size_t>(columns_.path[p]) +
                                    u];
        }
    *stride = network_.in_stride();
    return network_.reverse(kernels, pass.radial, edge_count, pass.gradient.data()) + radial_.basis_count;
}

}  // namespace mlff::equivariant
