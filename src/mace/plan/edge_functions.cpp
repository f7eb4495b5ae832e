// SPDX-License-Identifier: MIT
#include "mace/plan/edge_functions.h"

#include <algorithm>
#include <cmath>

namespace mlff::mace::plan {
namespace {

// The cutoff function, continued beyond the cutoff as the same polynomial. Tables reach a little beyond the cutoff, and
// a kink there would spoil the interpolation before it.
ValueAndSlope smooth_cutoff(const PolynomialCutoff& cutoff, double r) {
    const double p = cutoff.exponent, t = r / cutoff.radius, power = std::pow(t, cutoff.exponent - 1);
    return {1 + power * t * (-(p + 1) * (p + 2) / 2 + t * (p * (p + 2) - t * p * (p + 1) / 2)),
            p * (p + 1) * (p + 2) / 2 * power * (-1 + t * (2 - t)) / cutoff.radius};
}

void add_density(const Interaction& interaction, RadialColumns& columns) {
    if (!interaction.density_network) return;
    columns.density = columns.count;
    columns.widths.push_back(kRowPadding);
    columns.count += kRowPadding;
}

}  // namespace

bool ends_in_linear_layer(const DenseNetwork& network) {
    const DenseLayer& last = network.layers.back();
    return network.layers.size() > 1 && last.activation.kind == Activation::Kind::identity && last.norm_scale.empty();
}

RadialColumns columns_of_weights(const Interaction& interaction) {
    RadialColumns columns;
    for (const Convolution::Path& path : interaction.convolution.paths) {
        columns.path.push_back(columns.count);
        columns.widths.push_back(padded(interaction.convolution.in[path.in_block].multiplicity));
        columns.count += columns.widths.back();
    }
    add_density(interaction, columns);
    return columns;
}

RadialColumns columns_of_hidden(const Interaction& interaction) {
    RadialColumns columns;
    columns.kind = RadialColumns::Kind::hidden;
    columns.hidden_count = interaction.radial_network.layers.back().in_width;
    columns.has_constant = !interaction.radial_network.layers.back().bias.empty();
    columns.count = padded(columns.hidden_count + (columns.has_constant ? 1 : 0));
    columns.widths.push_back(columns.count);
    add_density(interaction, columns);
    return columns;
}

EdgeFunctions::EdgeFunctions(const Weights& weights, const Interaction& interaction, const RadialColumns& columns)
    : interaction_(interaction),
      columns_(columns),
      radial_(weights.radial),
      network_(interaction.radial_network,
               interaction.radial_network.layers.size() - (columns.kind == RadialColumns::Kind::hidden ? 1 : 0)) {
    if (interaction.density_network)
        density_.emplace(*interaction.density_network, interaction.density_network->layers.size());
}

void EdgeFunctions::start(Pass& pass, std::span<const EdgePlace> edges) const {
    network_.start(pass.radial, static_cast<int>(edges.size()));
    pass.outside.assign(edges.size(), {1, 0});
    for (size_t e = 0; e < edges.size(); ++e) {
        const double r = std::abs(edges[e].distance) < 1e-9 ? 1e-9 : edges[e].distance;
        const auto [cutoff, cutoff_slope] = smooth_cutoff(radial_.cutoff, r);
        bare_basis(radial_, edges[e].sender_element, edges[e].receiver_element, r, pass.basis);
        double* input = pass.radial.input.data() + e * static_cast<size_t>(network_.in_stride());
        double* slope = pass.radial.input_slope.data() + e * static_cast<size_t>(network_.in_stride());
        if (!radial_.cutoff_in_basis) pass.outside[e] = {cutoff, cutoff_slope};
        for (size_t n = 0; n < pass.basis.size(); ++n) {
            const auto [value, by_r] = pass.basis[n];
            input[n] = radial_.cutoff_in_basis ? value * cutoff : value;
            slope[n] = radial_.cutoff_in_basis ? by_r * cutoff + value * cutoff_slope : by_r;
        }
        if (interaction_.edge_input == Interaction::EdgeInput::elements) {
            const auto width = static_cast<size_t>(interaction_.edge_width);
            double* at = input + pass.basis.size();
            std::copy_n(interaction_.sender_table.data() + static_cast<size_t>(edges[e].sender_element) * width, width,
                        at);
            std::copy_n(interaction_.receiver_table.data() + static_cast<size_t>(edges[e].receiver_element) * width,
                        width, at + width);
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
        const double outside = pass.outside[e].value, outside_slope = pass.outside[e].slope;
        const auto put = [&](size_t column, double f, double f_slope) {
            value[column] = outside * f;
            if (slope) slope[column] = outside * f_slope + outside_slope * f;
        };
        const BatchedPass::Layer& last = pass.radial.layers.back();
        const size_t at = e * static_cast<size_t>(network_.out_stride());
        const auto put_output = [&](size_t column, size_t i) {
            put(column, last.output[at + i], slope ? last.output_slope[at + i] : 0);
        };
        for (size_t p = 0; p < columns_.path.size(); ++p) {
            const Convolution::Path& path = interaction_.convolution.paths[p];
            const auto copies = static_cast<size_t>(interaction_.convolution.in[path.in_block].multiplicity);
            for (size_t u = 0; u < copies; ++u)
                put_output(static_cast<size_t>(columns_.path[p]) + u, static_cast<size_t>(path.weight_offset) + u);
        }
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
            const Convolution::Path& path = interaction_.convolution.paths[p];
            const auto copies = static_cast<size_t>(interaction_.convolution.in[path.in_block].multiplicity);
            for (size_t u = 0; u < copies; ++u)
                pass.gradient[e * out_stride + static_cast<size_t>(path.weight_offset) + u] =
                    pass.outside[e].value * values_gradient[e * static_cast<size_t>(columns_.count) +
                                                            static_cast<size_t>(columns_.path[p]) + u];
        }
    *stride = network_.in_stride();
    return network_.reverse(kernels, pass.radial, edge_count, pass.gradient.data()) + radial_.basis_count;
}

}  // namespace mlff::mace::plan
