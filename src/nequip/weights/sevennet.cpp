// SPDX-License-Identifier: MIT
// Loads a checkpoint of SevenNet: the settings say which irreps and paths there are, the state dict has the numbers.
#include <algorithm>
#include <cmath>
#include <set>

#include "equivariant/wigner.h"
#include "nequip/weights/loaders.h"

namespace mlff::nequip {
namespace {

// The state dict, which had other names until April 2024: "t convolution" for "t_convolution", and some besides.
class StateDict {
public:
    StateDict(const Module& root, LoadBudget& budget) : reader_(root, "", budget) {}

    const ModuleReader& reader() const { return reader_; }
    ModuleReader at(const std::string& name) const {
        const auto found = find(name);
        if (!found) reader_.malformed("has no module '", name, "'");
        return *found;
    }
    std::optional<ModuleReader> find(const std::string& name) const {
        const auto found = reader_.find(name);
        return found ? found : reader_.find(old_name(name));
    }
    // Every part must be one that this loader knows.
    void expect_parts(const std::vector<std::string>& known) const {
        std::set<std::string> names;
        for (const std::string& name : known) names.insert({name, old_name(name)});
        for (const auto& [name, part] : reader_.module().children)
            if (!names.contains(name)) reader_.unsupported("the part '", name, "' is not implemented");
    }

private:
    static std::string old_name(std::string name) {
        if (name == "edge_embedding") return "EdgeEmbedding";
        if (name == "reduce_input_to_hidden") return "reducing nn input to hidden";
        if (name == "reduce_hidden_to_energy") return "reducing nn hidden to energy";
        std::replace(name.begin(), name.end(), '_', ' ');
        return name;
    }
    ModuleReader reader_;
};

std::string part_of_layer(int layer, std::string_view name) { return concat(layer, "_", name); }

void expect_known_parts(const StateDict& state, const SevenNetSettings& settings) {
    std::vector<std::string> known = {
        "edge_embedding",         "edge_preprocess",       "onehot_to_feature_x",    "readout_FCN",
        "reduce_input_to_hidden", "rescale_atomic_energy", "reduce_hidden_to_energy"};
    for (int t = 0; t < static_cast<int>(settings.outputs.size()); ++t)
        for (const char* name :
             {"self_connection_intro", "self_interaction_1", "convolution", "self_interaction_2", "equivariant_gate"})
            known.push_back(part_of_layer(t, name));
    state.expect_parts(known);
}

RadialEmbedding load_radial(const StateDict& state, const SevenNetSettings& settings) {
    RadialEmbedding radial;
    radial.factor = 2 / settings.cutoff;
    radial.cutoff = settings.cutoff_function;
    const auto embedding = state.find("edge_embedding");
    const auto basis = embedding ? embedding->find("basis_function") : std::nullopt;
    if (settings.has_trained_basis) {
        if (!basis || !basis->has_tensor("coeffs"))
            state.reader().malformed(
                "has no tensor 'edge_embedding.basis_function.coeffs', which is trained according to the ", "config");
        radial.parameters = basis->values("coeffs", {settings.basis_count});
    } else {
        for (int n = 1; n <= settings.basis_count; ++n)  // single precision, whatever that of the weights
            radial.parameters.push_back(static_cast<float>(n * M_PI / settings.cutoff));
    }
    radial.basis_count = static_cast<int>(radial.parameters.size());
    return radial;
}

// Layers "layer0", "layer1" ... of e3nn's FullyConnectedNet.
DenseNetwork load_fully_connected(const ModuleReader& reader, const std::vector<int>& widths,
                                  const Activation& activation) {
    DenseNetwork network;
    for (size_t k = 0; k + 1 < widths.size(); ++k) {
        DenseLayer layer;
        layer.in_width = widths[k];
        layer.out_width = widths[k + 1];
        const ModuleReader part = reader.at(concat("layer", k));
        const Tensor& tensor = part.tensor("weight");
        if (tensor.shape.size() != 2 || tensor.shape[1] != layer.out_width)
            part.malformed("tensor 'weight' has shape ", shape_text(tensor.shape), ", but there are ", layer.out_width,
                           k + 2 == widths.size() ? " outputs of the network" : " hidden neurons");
        layer.weight = part.values("weight", {layer.in_width, layer.out_width});
        const double factor = 1 / std::sqrt(static_cast<double>(layer.in_width));
        for (double& weight : layer.weight) weight *= factor;
        if (k + 2 < widths.size()) layer.activation = activation;
        network.layers.push_back(std::move(layer));
    }
    return network;
}

// The stored 3j symbols, which may be those of older or newer versions of e3nn, and which are rounded.
std::vector<double> coupling_tensor(const ModuleReader& convolution, int l1, int l2, int l3) {
    const std::vector<double> exact = new_wigner_3j(l1, l2, l3);
    const auto product = convolution.find("convolution");
    const auto compiled = product ? product->find("_compiled_main_left_right") : std::nullopt;
    const std::string name = concat("_w3j_", l1, "_", l2, "_", l3);
    if (!compiled || !compiled->has_tensor(name) || l1 == 0 || l2 == 0 || l3 == 0) return exact;
    const std::vector<double> stored = compiled->values(name, {2 * l1 + 1, 2 * l2 + 1, 2 * l3 + 1});
    double overlap = 0;
    for (size_t i = 0; i < stored.size(); ++i) overlap += stored[i] * exact[i];
    for (size_t i = 0; i < stored.size(); ++i)
        if (!(std::abs(stored[i] - (overlap < 0 ? -exact[i] : exact[i])) < 1e-5))
            compiled->malformed("tensor '", name, "' is not the 3j symbol of e3nn");
    return stored;
}

// The number before columns are compared: features of a middle layer can have had more paths before version 0.11.
void expect_columns(const ModuleReader& network, const SevenNetSettings& settings, int count) {
    const ModuleReader last = network.at(concat("layer", settings.hidden_widths.size()));
    const Tensor& tensor = last.tensor("weight");
    if (tensor.shape.size() == 2 && tensor.shape[1] == count) return;
    last.unsupported("the radial weights ", shape_text(tensor.shape), " are not those of the ", count,
                     " channels of paths that the irreps imply");
}

double denominator(const ModuleReader& convolution) {
    const double value = convolution.positive(convolution.has_tensor("denominator") ? "denominator" : "denumerator");
    if (!(value > 1e-6)) convolution.malformed("'denominator' is ", value, ", which is too small");
    return value;
}

class LayerLoader {
public:
    LayerLoader(const StateDict& state, const SevenNetSettings& settings, int head)
        : state_(state), settings_(settings), head_(head) {}

    Layer load(int t, const Irreps& in, int basis_count) const {
        const bool is_last = t + 1 == static_cast<int>(settings_.outputs.size());
        const Irreps& out = settings_.outputs[static_cast<size_t>(t)];
        Layer layer;
        layer.gate = make_gate(state_.reader(), out);
        layer.gate.scalar_activation = settings_.scalar_activation;
        layer.gate.odd_scalar_activation = settings_.odd_scalar_activation;
        layer.gate.gate_activation = settings_.gate_activation;
        layer.up =
            load_flat_linear(part(t, "self_interaction_1").at("linear"), in, in, modality(settings_.modal_intro));
        const ModuleReader convolution = part(t, "convolution");
        layer.convolution = load_convolution(convolution, in, layer.gate, is_last);
        std::vector<int> widths = {basis_count};
        widths.insert(widths.end(), settings_.hidden_widths.begin(), settings_.hidden_widths.end());
        widths.push_back(layer.convolution.weight_count);
        layer.radial_network = load_fully_connected(convolution.at("weight_nn"), widths, settings_.radial_activation);
        layer.message =
            to_gate_order(load_flat_linear(part(t, "self_interaction_2").at("linear"), layer.convolution.out.merged(),
                                           sorted_gate_input(layer.gate), modality(settings_.modal_outro)),
                          layer.gate);
        scale_weights(layer.message, 1 / denominator(convolution));
        layer.self_connection = load_self_connection(t, in, layer.gate);
        return layer;
    }

private:
    ModuleReader part(int t, std::string_view name) const { return state_.at(part_of_layer(t, name)); }
    Modality modality(bool is_used) const { return {is_used ? settings_.modality_count : 0, head_}; }

    Convolution load_convolution(const ModuleReader& reader, const Irreps& in, const Gate& gate, bool is_last) const {
        int largest = 0;
        for (const IrrepBlock& block : gate.out.blocks()) largest = std::max(largest, block.irrep.degree);
        std::vector<PathOrigin> paths = all_paths(reader, in, settings_.harmonics, [&](const Irrep& irrep) {
            return irrep.degree <= largest && (!is_last || irrep.parity == 1);
        });
        if (settings_.has_sorted_columns) sort_paths(paths);
        const int columns = assign_columns(paths, in);
        sort_paths(paths);
        expect_columns(reader.at("weight_nn"), settings_, columns);
        return make_convolution(reader, in, settings_.harmonics, paths, columns, gate.in,
                                [&](int l1, int l2, int l3) { return coupling_tensor(reader, l1, l2, l3); });
    }
    Linear load_self_connection(int t, const Irreps& in, const Gate& gate) const {
        const ModuleReader reader = part(t, "self_connection_intro");
        const Irreps out = sorted_gate_input(gate);
        const bool is_linear = settings_.self_connections[static_cast<size_t>(t)] == "linear";
        const Linear sorted = is_linear ? load_flat_linear(reader.at("linear"), in, out, {})
                                        : load_species_linear(reader.at("fc_tensor_product"), in, out,
                                                              settings_.species_count, settings_.species);
        if (!sorted.bias.empty()) reader.unsupported("a self connection with a bias is not implemented");
        return to_gate_order(sorted, gate);
    }

    const StateDict& state_;
    const SevenNetSettings& settings_;
    int head_;
};

void load_first_features(const StateDict& state, const SevenNetSettings& settings, int head, Weights& weights) {
    Irreps species;
    species.append(settings.species_count, {0, 1});
    const Modality modality = {settings.modal_embedding ? settings.modality_count : 0, head};
    const ModuleReader reader = state.at("onehot_to_feature_x").at("linear");
    const Linear linear = load_flat_linear(reader, species, settings.first_irreps, modality);
    weights.first_irreps = settings.first_irreps;
    const auto width = static_cast<size_t>(weights.first_irreps.dimension());
    reader.take_numbers(static_cast<int64_t>(settings.species.size() * width));
    for (int index : settings.species) {
        std::vector<double> features(width, 0.0);
        std::vector<double> one_hot(static_cast<size_t>(settings.species_count), 0.0);
        one_hot[static_cast<size_t>(index)] = 1;
        compute_linear(linear, 0, one_hot.data(), features.data());
        weights.first_features.insert(weights.first_features.end(), features.begin(), features.end());
    }
}

// Two linear maps without a function between them are one.
DenseLayer load_linear_readout(const StateDict& state, const SevenNetSettings& settings, int head) {
    const Irreps& in = settings.outputs.back();
    Irreps hidden, energy;
    hidden.append(in.dimension() / 2, {0, 1});
    energy.append(1, {0, 1});
    if (hidden.dimension() == 0) state.reader().unsupported("a readout of a single feature is not implemented");
    const Modality modality = {settings.modal_output ? settings.modality_count : 0, head};
    const Linear first = load_flat_linear(state.at("reduce_input_to_hidden").at("linear"), in, hidden, modality);
    const Linear second = load_flat_linear(state.at("reduce_hidden_to_energy").at("linear"), hidden, energy, {});
    const std::vector<double>& outer = second.paths.at(0).weight;
    DenseLayer layer;
    layer.out_width = 1;
    for (const Linear::Path& path : first.paths)
        for (size_t row = 0; row < path.weight.size(); row += outer.size()) {
            double sum = 0;
            for (size_t h = 0; h < outer.size(); ++h) sum += path.weight[row + h] * outer[h];
            layer.weight.push_back(sum);
        }
    layer.in_width = static_cast<int>(layer.weight.size());
    if (layer.in_width == 0) state.reader().unsupported("a last layer without 0e features is not implemented");
    double bias = second.bias.empty() ? 0 : second.bias[0];
    for (size_t h = 0; h < first.bias.size(); ++h) bias += first.bias[h] * outer[h];
    if (!first.bias.empty() || !second.bias.empty()) layer.bias = {bias};
    return layer;
}

DenseNetwork load_readout(const StateDict& state, const SevenNetSettings& settings, int head) {
    if (!settings.has_network_readout) return {{load_linear_readout(state, settings, head)}};
    const Irreps& in = settings.outputs.back();
    if (!in.all_scalar())
        state.reader().unsupported("readout_as_fcn of features '", in.text(),
                                   "', which are not 0e, is not implemented");
    std::vector<int> widths = {in.dimension()};
    widths.insert(widths.end(), settings.readout_widths.begin(), settings.readout_widths.end());
    widths.push_back(1);
    return load_fully_connected(state.at("readout_FCN").at("fcn"), widths, settings.readout_activation);
}

// [1], [species] or [modality][species] as [element]
std::vector<double> load_by_element(const ModuleReader& reader, std::string_view name, const SevenNetSettings& settings,
                                    bool is_modal, int head) {
    const std::vector<int64_t>& shape = reader.tensor(name).shape;
    const std::vector<double> values = reader.values(name);
    const auto species = static_cast<size_t>(settings.species_count);
    const auto rows = static_cast<size_t>(is_modal ? settings.modality_count : 1);
    if (shape.size() != (is_modal ? 2 : 1) || (values.size() != rows * species && (is_modal || values.size() != 1)) ||
        (is_modal && static_cast<size_t>(shape[1]) != species))
        reader.malformed("tensor '", name, "' has shape ", shape_text(shape), " for ", species, " species",
                         is_modal ? concat(" and ", rows, " modalities") : "");
    std::vector<double> result;
    for (int index : settings.species)
        result.push_back(
            values.size() == 1
                ? values[0]
                : values[(is_modal ? static_cast<size_t>(head) : 0) * species + static_cast<size_t>(index)]);
    return result;
}

std::string cutoff_text(const CutoffFunction& cutoff) {
    return cutoff.onset > 0 ? concat("XPLOR from ", cutoff.onset) : concat("polynomial ", cutoff.exponent);
}

// Without masks, 3j symbols and divisors, which are no weights.
int64_t count_weights(const Module& module) {
    int64_t count = 0;
    for (const auto& [name, tensor] : module.tensors)
        if (name == "weight" || name == "bias" || name == "coeffs") count += tensor.element_count();
    for (const auto& [name, child] : module.children) count += count_weights(child);
    return count;
}

}  // namespace

Description describe_sevennet(const Module& root) {
    LoadBudget budget(root);
    const SevenNetSettings settings = read_sevennet_settings(root, budget);
    const StateDict state(root, budget);
    Description description;
    description.class_name = "SevenNet";
    description.version = settings.version;
    description.elements = settings.atomic_numbers;
    description.heads = settings.heads;
    description.cutoff = settings.cutoff;
    description.cutoff_function = cutoff_text(settings.cutoff_function);
    description.basis_count = load_radial(state, settings).basis_count;
    description.max_degree = settings.harmonics.max_degree;
    description.layer_irreps.push_back(settings.first_irreps.text());
    for (const Irreps& out : settings.outputs) description.layer_irreps.push_back(out.text());
    description.self_connections = settings.self_connections;
    description.hidden_widths = settings.hidden_widths;
    description.is_parity = settings.harmonics.is_parity;
    description.dtype = state.at("onehot_to_feature_x").at("linear").tensor("weight").dtype;
    description.parameter_count = count_weights(root);
    return description;
}

Weights load_sevennet(const Module& root, int head) {
    LoadBudget budget(root);
    const SevenNetSettings settings = read_sevennet_settings(root, budget);
    const StateDict state(root, budget);
    if (head < 0 || head >= static_cast<int>(settings.heads.size()))
        fail(Status::argument, "head ", head, " of a model with ", settings.heads.size(), " heads");
    expect_known_parts(state, settings);
    Weights weights;
    weights.atomic_numbers = settings.atomic_numbers;
    weights.cutoff = settings.cutoff;
    weights.max_degree = settings.harmonics.max_degree;
    weights.radial = load_radial(state, settings);
    load_first_features(state, settings, head, weights);
    const LayerLoader loader(state, settings, head);
    for (int t = 0; t < static_cast<int>(settings.outputs.size()); ++t) {
        const Irreps& in = t == 0 ? settings.first_irreps : settings.outputs[static_cast<size_t>(t) - 1];
        weights.layers.push_back(loader.load(t, in, weights.radial.basis_count));
    }
    weights.readout = load_readout(state, settings, head);
    const ModuleReader rescale = state.at("rescale_atomic_energy");
    weights.scale = load_by_element(rescale, "scale", settings, settings.modal_scale, head);
    weights.shift = load_by_element(rescale, "shift", settings, settings.modal_shift, head);
    return weights;
}

}  // namespace mlff::nequip
