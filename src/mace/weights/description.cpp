// SPDX-License-Identifier: MIT
#include "mace/weights/description.h"

#include <algorithm>
#include <cmath>

#include "core/elements.h"
#include "core/error.h"

namespace mlff::mace {
namespace {

std::string class_of(const Module* module) { return module ? std::string(module->class_name()) : std::string(); }

std::string text_attribute(const Module* module, std::string_view name) {
    const JsonValue* value = module ? module->find_attribute(name) : nullptr;
    return value && value->is_string() ? value->text() : std::string();
}

// A number stored as a one-element tensor (newer files) or as a plain attribute (older files).
std::optional<double> number(const Module* module, std::string_view name) {
    if (!module) return std::nullopt;
    if (const Tensor* tensor = module->find_tensor(name); tensor && tensor->element_count() == 1) return tensor->item();
    const JsonValue* value = module->find_attribute(name);
    return value && value->is_number() ? std::optional(value->number()) : std::nullopt;
}

std::optional<int> whole_number(const Module* module, std::string_view name) {
    const auto value = number(module, name);
    if (!value || !(std::abs(*value) < 1e6)) return std::nullopt;
    return static_cast<int>(*value);
}

std::vector<double> numbers(const Module* module, std::string_view name) {
    const Tensor* tensor = module ? module->find_tensor(name) : nullptr;
    return tensor ? tensor->to_doubles() : std::vector<double>();
}

std::vector<int> small_integers(const JsonValue* list) {
    std::vector<int> values;
    if (list && list->is_array())
        for (const JsonValue& value : *list)
            if (value.is_number_integer() && std::abs(value.number()) < 1e6)
                values.push_back(static_cast<int>(value.integer()));
    return values;
}

std::vector<int> read_elements(const Module& model) {
    std::vector<int> elements;
    if (const Tensor* tensor = model.find_tensor("atomic_numbers")) {
        for (int64_t z : tensor->to_integers()) {
            if (z < 1 || z > kMaxAtomicNumber)
                fail(Status::format, "tensor 'atomic_numbers' holds ", z, ", which is not an atomic number");
            elements.push_back(static_cast<int>(z));
        }
    } else {
        elements = small_integers(model.find_attribute("atomic_numbers"));
        for (int z : elements)
            if (z < 1 || z > kMaxAtomicNumber)
                fail(Status::format, "attribute 'atomic_numbers' holds ", z, ", which is not an atomic number");
    }
    return elements;
}

std::vector<std::string> read_heads(const Module& model) {
    std::vector<std::string> heads;
    if (const JsonValue* list = model.find_attribute("heads"); list && list->is_array())
        for (const JsonValue& head : *list)
            if (head.is_string()) heads.push_back(head.text());
    if (heads.empty()) heads.push_back("Default");  // files from before multi-head training
    return heads;
}

// The highest order of the product, from the U tensors present, else from the attribute.
int read_correlation(const Module* product) {
    const Module* contraction = product ? product->find("symmetric_contractions") : nullptr;
    if (!contraction) return 0;
    if (const auto degree = whole_number(contraction, "contraction_degree")) return *degree;
    const Module* first = contraction->find("contractions.0");
    if (const auto order = whole_number(first, "correlation")) return *order;
    int order = 0;
    while (first && first->find_tensor("U_matrix_" + std::to_string(order + 1))) ++order;
    return order;
}

std::vector<int> read_hidden_widths(const Module* interaction) {
    const Module* network = interaction ? interaction->find("conv_tp_weights") : nullptr;
    std::vector<int> widths = small_integers(network ? network->find_attribute("hs") : nullptr);
    if (widths.size() >= 2) return {widths.begin() + 1, widths.end() - 1};  // between input and output
    return small_integers(interaction ? interaction->find_attribute("radial_MLP") : nullptr);
}

LayerDescription read_layer(const Module* interaction, const Module* product) {
    LayerDescription layer;
    layer.interaction = class_of(interaction);
    layer.message_irreps = text_attribute(interaction, "irreps_out");
    if (layer.message_irreps.empty()) layer.message_irreps = text_attribute(interaction, "target_irreps");
    layer.output_irreps = text_attribute(product ? product->find("linear") : nullptr, "irreps_out");
    if (layer.output_irreps.empty()) layer.output_irreps = text_attribute(interaction, "hidden_irreps");
    layer.correlation = read_correlation(product);
    layer.average_neighbor_count = number(interaction, "avg_num_neighbors");
    return layer;
}

RadialDescription read_radial(const Module& model) {
    RadialDescription radial;
    const Module* embedding = model.find("radial_embedding");
    const Module* basis = embedding ? embedding->find("bessel_fn") : nullptr;
    radial.basis = class_of(basis);
    radial.basis_count = whole_number(embedding, "out_dim").value_or(0);
    radial.transform = class_of(embedding ? embedding->find("distance_transform") : nullptr);
    radial.cutoff_exponent = number(embedding ? embedding->find("cutoff_fn") : nullptr, "p");
    if (const JsonValue* applies = embedding ? embedding->find_attribute("apply_cutoff") : nullptr;
        applies && applies->is_boolean())
        radial.applies_cutoff_to_basis = applies->boolean();
    radial.hidden_widths = read_hidden_widths(model.find("interactions.0"));
    return radial;
}

std::vector<std::vector<double>> read_atomic_energies(const Module& model, size_t element_count) {
    const std::vector<double> flat = numbers(&model, "atomic_energies_fn.atomic_energies");
    std::vector<std::vector<double>> rows;
    if (element_count > 0 && flat.size() % element_count == 0)
        for (size_t at = 0; at < flat.size(); at += element_count)
            rows.emplace_back(flat.begin() + static_cast<ptrdiff_t>(at),
                              flat.begin() + static_cast<ptrdiff_t>(at + element_count));
    return rows;
}

// "silu" from {"function": "torch.nn.functional.silu"}.
std::string read_gate(const Module& model) {
    const Module* readouts = model.find("readouts");
    if (!readouts || readouts->children.empty()) return {};
    const Module* activation = readouts->children.back().second.find("non_linearity.acts.0");
    const JsonValue* function = activation ? activation->find_attribute("f") : nullptr;
    if (!function || !function->is_object() || !function->contains("function") || !(*function)["function"].is_string())
        return {};
    const auto name = (*function)["function"].text();
    return name.substr(name.rfind('.') + 1);
}

int64_t count_parameters(const Module& module) {
    int64_t count = 0;
    for (const auto& [name, tensor] : module.tensors)
        if (tensor.is_parameter) count += tensor.element_count();
    for (const auto& [name, child] : module.children) count += count_parameters(child);
    return count;
}

// The type of the first floating-point parameter, depth first: the precision in which the model was saved.
const Tensor* first_parameter(const Module& module) {
    for (const auto& [name, tensor] : module.tensors)
        if (tensor.is_parameter && is_floating(tensor.dtype)) return &tensor;
    for (const auto& [name, child] : module.children)
        if (const Tensor* found = first_parameter(child)) return found;
    return nullptr;
}

void read_layers(const Module& model, Description& description) {
    const Module* interactions = model.find("interactions");
    const Module* products = model.find("products");
    const Module* readouts = model.find("readouts");
    const size_t layer_count = interactions ? interactions->children.size() : 0;
    const size_t readout_count = readouts ? readouts->children.size() : 0;
    for (size_t i = 0; i < layer_count; ++i) {
        const Module* product = products && i < products->children.size() ? &products->children[i].second : nullptr;
        description.layers.push_back(read_layer(&interactions->children[i].second, product));
        // A single readout for several layers reads the last one.
        if (readout_count == layer_count) description.layers[i].readout = class_of(&readouts->children[i].second);
    }
    if (readout_count == 1 && layer_count > 1)
        description.layers.back().readout = class_of(&readouts->children[0].second);
}

}  // namespace

const Module& unwrap(const Module& root) {
    const Module* inner = root.class_name().substr(0, 11) == "LAMMPS_MACE" ? root.find("model") : nullptr;
    return inner ? *inner : root;
}

Description describe(const Module& root) {
    const Module& model = unwrap(root);
    Description description;
    description.class_name = model.class_name();
    description.is_mace = model.class_path.substr(0, 5) == "mace." && model.find("interactions") != nullptr;
    if (&model != &root) {
        description.wrapper = root.class_name();
        description.fixed_head = whole_number(&root, "head");
    }
    description.elements = read_elements(model);
    description.cutoff = number(&model, "r_max").value_or(0);
    const Module* harmonics = model.find("spherical_harmonics");
    description.max_degree = whole_number(harmonics, "_lmax").value_or(0);
    read_layers(model, description);
    if (!description.layers.empty()) description.hidden_irreps = description.layers[0].output_irreps;
    description.radial = read_radial(model);
    description.heads = read_heads(model);
    description.atomic_energies = read_atomic_energies(model, description.elements.size());
    description.scale = numbers(&model, "scale_shift.scale");
    description.shift = numbers(&model, "scale_shift.shift");
    description.has_pair_repulsion = model.find("pair_repulsion_fn") != nullptr;
    if (const Module* embedders = model.find("joint_embedding.embedders"))
        for (const auto& [name, embedder] : embedders->children) description.extra_inputs.push_back(name);
    description.gate = read_gate(model);
    const Module* contraction = model.find("products.0.symmetric_contractions");
    description.tensor_layout =
        contraction && contraction->class_path.substr(0, 14) == "cuequivariance" ? "cuequivariance" : "e3nn";
    if (const Tensor* parameter = first_parameter(model)) description.dtype = parameter->dtype;
    description.parameter_count = count_parameters(model);
    return description;
}

}  // namespace mlff::mace
