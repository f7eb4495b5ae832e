// SPDX-License-Identifier: MIT
// Loads a file of Nequix, whose tensors formats/nqx.h has named.
#include <algorithm>
#include <cmath>

#include "core/elements.h"
#include "nequip/weights/loaders.h"

namespace mlff::nequip {
namespace {

constexpr double kNormEpsilon = 1e-12;
// e3nn_jax finds it from the quantiles of the normal distribution, not from a sample as e3nn does.
constexpr Activation kGateActivation = {Activation::Kind::silu, 1.6765620560798837};

struct NequixSettings {
    std::vector<int> atomic_numbers;
    Irreps hidden;
    Harmonics harmonics;
    double cutoff = 0;  // angstrom
    int exponent = 0;
    int layer_count = 0, basis_count = 0, mlp_width = 0, mlp_layers = 0;
    bool has_element_skip = false, has_norm = false;
    double shift = 0, scale = 0, average_neighbors = 0;
};

std::vector<int> read_atomic_numbers(const ModuleReader& config) {
    const JsonValue* list = config.attribute("atomic_numbers");
    if (!list || !list->is_array() || list->empty() || list->size() > kMaxAtomicNumber)
        config.malformed("has no list 'atomic_numbers'");
    std::vector<int> numbers;
    for (const JsonValue& item : *list) {
        const auto number = json_integer(item, 1, kMaxAtomicNumber);
        if (!number || std::find(numbers.begin(), numbers.end(), *number) != numbers.end())
            config.malformed("'atomic_numbers' holds something that is no atomic number, or one of them twice");
        numbers.push_back(*number);
    }
    return numbers;
}

NequixSettings read_settings(const Module& root, LoadBudget& budget) {
    Module dict;
    const JsonValue* found = root.find_attribute("config");
    const ModuleReader config(dict, "config", budget);
    if (!found || !found->is_object()) config.malformed("is not a dict");
    dict.attributes = *found;

    NequixSettings settings;
    if (config.flag("add_repulsion", false)) config.unsupported("add_repulsion is not implemented");
    settings.atomic_numbers = read_atomic_numbers(config);
    settings.hidden = config.irreps("hidden_irreps");
    int degree = -1;
    for (const IrrepBlock& block : settings.hidden.blocks()) {
        if (block.multiplicity == 0 || block.irrep.degree <= degree || block.irrep.degree > kMaxLoadedDegree ||
            !(block.irrep == settings.harmonics.irrep(block.irrep.degree)))
            config.unsupported("hidden_irreps '", settings.hidden.text(),
                               "' are not implemented: expected one block for each l up to ", kMaxLoadedDegree,
                               " with the parity of the harmonics");
        degree = block.irrep.degree;
    }
    if (settings.hidden.block_count() == 0 || !settings.hidden[0].irrep.is_scalar())
        config.unsupported("hidden_irreps without 0e are not implemented");
    settings.harmonics.max_degree = config.integer("lmax", 0, 100);
    if (settings.harmonics.max_degree > kMaxLoadedDegree)
        config.unsupported("lmax = ", settings.harmonics.max_degree, " is not implemented; ", kMaxLoadedDegree,
                           " is the largest");
    settings.cutoff = config.positive("cutoff");
    settings.exponent = config.integer("radial_polynomial_p", 1, kMaxCutoffExponent);
    settings.layer_count = config.integer("n_layers", 1, kMaxLayers);
    settings.basis_count = config.integer("radial_basis_size", 1, kMaxBasisCount);
    settings.mlp_width = config.integer("radial_mlp_size", 1, kMaxWidth);
    settings.mlp_layers = config.integer("radial_mlp_layers", 0, kMaxLayers);
    settings.has_element_skip = config.flag("index_weights", false);
    settings.has_norm = config.flag("layer_norm", false);
    settings.shift = config.number("shift");
    settings.scale = config.number("scale");
    settings.average_neighbors = config.positive("avg_n_neighbors");
    return settings;
}

// One matrix [copies in][copies out] for each irrep that both sides have. Every irrep is one block on either side.
// With an element count other than 0 there is one for each element.
Linear load_block_linear(const ModuleReader& reader, const Irreps& in, const Irreps& out, int element_count,
                         double factor) {
    Linear linear;
    linear.in = in;
    linear.out = out;
    linear.element_count = std::max(element_count, 1);
    for (int i = 0; i < in.block_count(); ++i)
        for (int o = 0; o < out.block_count(); ++o) {
            if (!(in[i].irrep == out[o].irrep)) continue;
            std::vector<int64_t> shape = {in[i].multiplicity, out[o].multiplicity};
            if (element_count > 0) shape.insert(shape.begin(), element_count);
            Linear::Path path = {i, o, reader.values(std::to_string(in[i].irrep.degree), shape)};
            const double scale = factor / std::sqrt(static_cast<double>(in[i].multiplicity));
            for (double& weight : path.weight) weight *= scale;
            linear.paths.push_back(std::move(path));
        }
    return linear;
}

DenseNetwork load_radial_network(const ModuleReader& reader, const NequixSettings& settings, int weight_count) {
    DenseNetwork network;
    for (int k = 0; k <= settings.mlp_layers; ++k) {
        DenseLayer layer;
        layer.in_width = k == 0 ? settings.basis_count : settings.mlp_width;
        layer.out_width = k == settings.mlp_layers ? weight_count : settings.mlp_width;
        layer.weight = reader.values(std::to_string(k), {layer.in_width, layer.out_width});
        if (k < settings.mlp_layers) layer.activation = {Activation::Kind::silu, 1};
        network.layers.push_back(std::move(layer));
    }
    return network;
}

// Scalars and gates are one block, for the norm counts blocks.
Gate make_nequix_gate(const ModuleReader& reader, const Irreps& out) {
    Gate gate = make_gate(reader, out);
    gate.in = gate.in.merged();
    gate.scalar_activation = gate.odd_scalar_activation = gate.gate_activation = kGateActivation;
    return gate;
}

Norm load_norm(const ModuleReader& reader, const Irreps& irreps) {
    Norm norm;
    norm.epsilon = kNormEpsilon;
    for (const IrrepBlock& block : irreps.blocks()) {
        const std::vector<double> scale = reader.values(std::to_string(block.irrep.degree), {block.multiplicity});
        norm.scale.insert(norm.scale.end(), scale.begin(), scale.end());
    }
    return norm;
}

Layer load_layer(const ModuleReader& reader, const NequixSettings& settings, const Irreps& in, const Irreps& out) {
    Layer layer;
    layer.gate = make_nequix_gate(reader, out);
    layer.up = load_block_linear(reader.at("linear_1"), in, in, 0, 1);
    std::vector<PathOrigin> paths =
        all_paths(reader, in, settings.harmonics, [&](const Irrep& irrep) { return out.copies_of(irrep) > 0; });
    sort_paths(paths);
    const int weight_count = assign_columns(paths, in);
    layer.convolution =
        make_convolution(reader, in, settings.harmonics, paths, weight_count, layer.gate.in, new_wigner_3j);
    layer.radial_network = load_radial_network(reader.at("radial"), settings, weight_count);
    layer.message = load_block_linear(reader.at("linear_2"), layer.convolution.out.merged(), layer.gate.in, 0,
                                      1 / std::sqrt(settings.average_neighbors));
    layer.self_connection =
        load_block_linear(reader.at("skip"), in, layer.gate.in,
                          settings.has_element_skip ? static_cast<int>(settings.atomic_numbers.size()) : 0, 1);
    if (settings.has_norm) layer.norm = load_norm(reader.at("norm"), layer.gate.in);
    return layer;
}

Irreps scalars_of(const Irreps& hidden) {
    Irreps result;
    result.append(hidden[0].multiplicity, hidden[0].irrep);
    return result;
}

int64_t count_numbers(const Module& module) {
    int64_t count = 0;
    for (const auto& [name, tensor] : module.tensors) count += tensor.element_count();
    for (const auto& [name, child] : module.children) count += count_numbers(child);
    return count;
}

}  // namespace

Description describe_nequix(const Module& root) {
    LoadBudget budget(root);
    const NequixSettings settings = read_settings(root, budget);
    Description description;
    description.class_name = "Nequix";
    description.elements = settings.atomic_numbers;
    description.heads = {"Default"};
    description.cutoff = settings.cutoff;
    description.cutoff_function = concat("polynomial ", settings.exponent);
    description.basis_count = settings.basis_count;
    description.max_degree = settings.harmonics.max_degree;
    description.layer_irreps.push_back(concat(settings.atomic_numbers.size(), "x0e"));
    for (int t = 1; t < settings.layer_count; ++t) description.layer_irreps.push_back(settings.hidden.text());
    description.layer_irreps.push_back(scalars_of(settings.hidden).text());
    description.self_connections.assign(static_cast<size_t>(settings.layer_count),
                                        settings.has_element_skip ? "nequip" : "linear");
    description.hidden_widths.assign(static_cast<size_t>(settings.mlp_layers), settings.mlp_width);
    description.is_parity = true;
    description.dtype = ModuleReader(root, "", budget).tensor("atomic_energies").dtype;
    description.parameter_count = count_numbers(root);
    return description;
}

Weights load_nequix(const Module& root) {
    LoadBudget budget(root);
    const NequixSettings settings = read_settings(root, budget);
    const ModuleReader reader(root, "", budget);
    const auto element_count = static_cast<int>(settings.atomic_numbers.size());
    Weights weights;
    weights.atomic_numbers = settings.atomic_numbers;
    weights.cutoff = settings.cutoff;
    weights.max_degree = settings.harmonics.max_degree;
    weights.radial.factor = 2 / settings.cutoff;
    weights.radial.basis_count = settings.basis_count;
    for (int n = 1; n <= settings.basis_count; ++n) weights.radial.parameters.push_back(n * M_PI / settings.cutoff);
    weights.radial.cutoff = {.radius = settings.cutoff, .exponent = settings.exponent};

    // The first features are the element itself.
    weights.first_irreps.append(element_count, {0, 1});
    for (int a = 0; a < element_count; ++a)
        for (int b = 0; b < element_count; ++b) weights.first_features.push_back(a == b ? 1 : 0);
    Irreps features = weights.first_irreps;
    for (int t = 0; t < settings.layer_count; ++t) {
        const Irreps out = t + 1 == settings.layer_count ? scalars_of(settings.hidden) : settings.hidden;
        weights.layers.push_back(load_layer(reader.at("layers").at(std::to_string(t)), settings, features, out));
        features = out;
    }
    DenseLayer readout;
    readout.in_width = features.dimension();
    readout.out_width = 1;
    readout.weight = reader.values("readout", {readout.in_width, 1});
    for (double& weight : readout.weight) weight /= std::sqrt(static_cast<double>(readout.in_width));
    weights.readout.layers.push_back(std::move(readout));
    weights.scale.assign(static_cast<size_t>(element_count), settings.scale);
    weights.shift = reader.values("atomic_energies", {element_count});
    for (double& shift : weights.shift) shift += settings.shift;
    return weights;
}

}  // namespace mlff::nequip
