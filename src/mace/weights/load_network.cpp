// SPDX-License-Identifier: MIT
// Loads dense networks on scalars: e3nn's FullyConnectedNet, MACE's RadialMLP, torch's Sequential of Linear, LayerNorm
// and SiLU.
#include <cmath>

#include "mace/weights/loaders.h"

namespace mlff::mace {
namespace {

constexpr int64_t kMaxWidth = 1 << 20;

// Reads `weight` as a matrix with its sizes.
std::vector<double> load_matrix(const ModuleReader& reader, int64_t& rows, int64_t& columns) {
    const Tensor& tensor = reader.tensor("weight");
    if (tensor.shape.size() != 2 || tensor.shape[0] < 1 || tensor.shape[1] < 1 || tensor.shape[0] > kMaxWidth ||
        tensor.shape[1] > kMaxWidth)
        reader.malformed("tensor 'weight' has shape ", shape_text(tensor.shape), ", expected a matrix");
    rows = tensor.shape[0];
    columns = tensor.shape[1];
    return reader.values("weight");
}

void check_chain(const ModuleReader& reader, const DenseNetwork& network, int in_width) {
    if (!network.layers.empty() && network.out_width() != in_width)
        reader.malformed("takes ", in_width, " inputs, but the previous layer has ", network.out_width(), " outputs");
}

// act(x W / sqrt(fan in)), W [in][out]; the last layer has no activation.
DenseNetwork load_fully_connected(const ModuleReader& reader) {
    DenseNetwork network;
    for (const ModuleReader& child : reader.children()) {
        if (!child.is("_Layer"))
            child.unsupported("class ", child.class_name(), " in a FullyConnectedNet is not implemented");
        if (child.find_number("var_in").value_or(1) != 1 || child.find_number("var_out").value_or(1) != 1)
            child.unsupported("variances other than 1 are not implemented");
        int64_t rows = 0, columns = 0;
        DenseLayer layer;
        layer.weight = load_matrix(child, rows, columns);
        layer.in_width = static_cast<int>(rows);
        layer.out_width = static_cast<int>(columns);
        for (double& weight : layer.weight) weight /= std::sqrt(static_cast<double>(rows));
        if (const auto activation = child.find("act")) layer.activation = load_activation(*activation);
        check_chain(child, network, layer.in_width);
        network.layers.push_back(std::move(layer));
    }
    if (network.layers.empty()) reader.malformed("has no layers");
    return network;
}

// torch's Linear: x W^T + b, W [out][in]
DenseLayer load_dense(const ModuleReader& reader) {
    int64_t rows = 0, columns = 0;
    const std::vector<double> stored = load_matrix(reader, rows, columns);
    DenseLayer layer;
    layer.in_width = static_cast<int>(columns);
    layer.out_width = static_cast<int>(rows);
    layer.weight.resize(stored.size());
    const auto in_width = static_cast<size_t>(columns), out_width = static_cast<size_t>(rows);
    for (size_t out = 0; out < out_width; ++out)
        for (size_t in = 0; in < in_width; ++in) layer.weight[in * out_width + out] = stored[out * in_width + in];
    if (reader.has_tensor("bias")) layer.bias = reader.values("bias", {rows});
    return layer;
}

void add_layer_norm(const ModuleReader& reader, DenseLayer& layer) {
    if (!layer.norm_scale.empty() || layer.activation.kind != Activation::Kind::identity)
        reader.unsupported("a LayerNorm that does not directly follow a Linear is not implemented");
    layer.norm_scale = reader.values("weight", {layer.out_width});
    layer.norm_offset = reader.values("bias", {layer.out_width});
    layer.norm_epsilon = reader.find_number("eps").value_or(1e-5);
    if (!(layer.norm_epsilon > 0)) reader.malformed("'eps' is not positive");
}

}  // namespace

Activation named_activation(const ModuleReader& reader, const JsonValue* function, std::string_view if_absent) {
    std::string name(if_absent);
    if (function) {
        if (!function->is_object() || !function->contains("function") || !(*function)["function"].is_string())
            reader.unsupported("an activation that is not a named function is not implemented");
        name = (*function)["function"].text();
    }
    const std::string last = name.substr(name.rfind('.') + 1);
    if (last == "silu") return {Activation::Kind::silu, 1};
    if (last == "tanh") return {Activation::Kind::tanh, 1};
    if (last == "sigmoid") return {Activation::Kind::sigmoid, 1};
    if (last == "abs") return {Activation::Kind::absolute, 1};
    reader.unsupported("activation '", name, "' is not implemented");
}

Activation load_activation(const ModuleReader& reader) {
    if (!reader.is("normalize2mom")) reader.unsupported("class ", reader.class_name(), ", expected an activation");
    Activation activation = named_activation(reader, reader.attribute("f"), "");
    if (!reader.flag("_is_id", false))  // TorchScript files do not store the factor
        activation.factor = reader.find_number("cst").value_or(e3nn_factor(activation.kind));
    return activation;
}

Activation load_activations(const ModuleReader& reader) {
    if (!reader.is("Activation")) reader.unsupported("class ", reader.class_name(), ", expected an activation");
    const std::vector<ModuleReader> list = reader.at("acts").children();
    if (list.empty()) return {};  // a model without a non-linearity: the file holds None
    const Activation first = load_activation(list[0]);
    for (const ModuleReader& item : list) {
        const Activation other = load_activation(item);
        if (other.kind != first.kind || other.factor != first.factor)
            reader.unsupported("different activations for different blocks are not implemented");
    }
    return first;
}

DenseNetwork load_sequential(const ModuleReader& reader) {
    if (!reader.is("Sequential")) reader.unsupported("class ", reader.class_name(), ", expected a Sequential");
    DenseNetwork network;
    for (const ModuleReader& child : reader.children()) {
        if (child.is("Linear")) {
            DenseLayer layer = load_dense(child);
            check_chain(child, network, layer.in_width);
            network.layers.push_back(std::move(layer));
            continue;
        }
        if (network.layers.empty())
            reader.unsupported("a network that begins with ", child.class_name(), " is not implemented");
        DenseLayer& layer = network.layers.back();
        if (child.is("LayerNorm")) {
            add_layer_norm(child, layer);
        } else if (child.is("SiLU") && layer.activation.kind == Activation::Kind::identity) {
            layer.activation = {Activation::Kind::silu, 1};
        } else {
            child.unsupported("class ", child.class_name(), " in a network is not implemented");
        }
    }
    if (network.layers.empty()) reader.malformed("has no layers");
    return network;
}

DenseNetwork load_network(const ModuleReader& reader) {
    if (reader.is("FullyConnectedNet")) return load_fully_connected(reader);
    if (reader.is("RadialMLP")) return load_sequential(reader.at("net"));
    reader.unsupported("network class ", reader.class_name(), " is not implemented");
}

}  // namespace mlff::mace
