// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <new>

#include "core/elements.h"
#include "mace/weights/loaders.h"

namespace mlff::mace {
namespace {

constexpr size_t kMaxHeads = 1024;
constexpr size_t kMaxLayers = 100;

// Older files store the atomic numbers as a plain list, newer ones as a tensor.
std::vector<int> load_atomic_numbers(const ModuleReader& reader) {
    std::vector<double> found;
    if (reader.has_tensor("atomic_numbers")) {
        if (reader.tensor("atomic_numbers").shape.size() != 1)
            reader.malformed("tensor 'atomic_numbers' is not a list");
        found = reader.values("atomic_numbers");
    } else if (const JsonValue* list = reader.attribute("atomic_numbers"); list && list->is_array()) {
        for (const JsonValue& value : *list) found.push_back(value.is_number() ? value.number() : -1);
    }
    if (found.empty() || found.size() > kMaxAtomicNumber) reader.malformed("no list of atomic numbers");
    std::vector<int> numbers;
    for (double value : found) {
        const bool sane = value >= 1 && value <= kMaxAtomicNumber && value == std::floor(value);
        if (!sane || std::find(numbers.begin(), numbers.end(), static_cast<int>(value)) != numbers.end())
            reader.malformed("atomic number ", value, " is not valid or occurs twice");
        numbers.push_back(static_cast<int>(value));
    }
    return numbers;
}

std::vector<std::string> load_heads(const ModuleReader& reader) {
    const JsonValue* list = reader.attribute("heads");
    if (!list) return {"Default"};
    if (!list->is_array() || list->empty() || list->size() > kMaxHeads)
        reader.malformed("'heads' is not a list of names");
    std::vector<std::string> heads;
    for (const JsonValue& name : *list) {
        if (!name.is_string()) reader.malformed("'heads' is not a list of names");
        heads.push_back(name.text());
    }
    return heads;
}

// One number for all heads, or one per head.
std::vector<double> load_per_head(const ModuleReader& reader, std::string_view name, int head_count) {
    std::vector<double> values = reader.values(name);
    if (values.size() == 1) values.assign(static_cast<size_t>(head_count), values[0]);
    if (values.size() != static_cast<size_t>(head_count))
        reader.malformed("tensor '", name, "' has ", values.size(), " elements for ", head_count, " heads");
    return values;
}

// [element] for all heads, or [head][element]
std::vector<double> load_atomic_energies(const ModuleReader& reader, const Weights& weights) {
    if (!reader.is("AtomicEnergiesBlock")) reader.unsupported("class ", reader.class_name(), " is not implemented");
    const auto element_count = static_cast<size_t>(weights.element_count());
    const auto head_count = static_cast<size_t>(weights.head_count());
    const std::vector<int64_t>& shape = reader.tensor("atomic_energies").shape;
    const std::vector<double> values = reader.values("atomic_energies");
    const bool fits = !shape.empty() && shape.size() <= 2 && shape.back() == weights.element_count();
    if (fits && values.size() == element_count * head_count) return values;
    if (!fits || values.size() != element_count)
        reader.malformed("tensor 'atomic_energies' has shape ", shape_text(shape), " for ", head_count, " heads and ",
                         element_count, " elements");
    std::vector<double> repeated;
    for (size_t head = 0; head < head_count; ++head) repeated.insert(repeated.end(), values.begin(), values.end());
    return repeated;
}

void load_inputs(const ModuleReader& reader, Weights& weights) {
    weights.atomic_numbers = load_atomic_numbers(reader);
    weights.heads = load_heads(reader);
    weights.cutoff = reader.positive("r_max");
    const ModuleReader embedding = reader.at("node_embedding").at("linear");
    weights.node_embedding = load_element_table(embedding, weights.element_count());
    weights.channel_count = static_cast<int>(weights.node_embedding.size()) / weights.element_count();
    if (const auto joint = reader.find("joint_embedding"))
        weights.joint_embedding = load_joint_embedding(*joint, weights.channel_count);
    if (const auto readout = reader.find("embedding_readout")) {
        const Readout loaded = load_readout(*readout, weights.head_count());
        if (loaded.last || !loaded.first.in.all_scalar() || loaded.first.in.dimension() != weights.channel_count)
            readout->unsupported("only a linear embedding readout of the first features is implemented");
        weights.embedding_readout = loaded.first;
    }
    weights.radial = load_radial_embedding(reader.at("radial_embedding"), weights.atomic_numbers);
    if (const auto repulsion = reader.find("pair_repulsion_fn"))
        weights.repulsion = load_repulsion(*repulsion, weights.atomic_numbers);
}

Irreps first_irreps(const Weights& weights) {
    Irreps irreps;
    irreps.append(weights.channel_count, {0, 1});
    return irreps;
}

void load_layers(const ModuleReader& reader, Weights& weights) {
    const std::vector<ModuleReader> interactions = reader.at("interactions").children();
    const std::vector<ModuleReader> products = reader.at("products").children();
    if (interactions.empty() || interactions.size() != products.size())
        reader.malformed(interactions.size(), " interactions and ", products.size(), " products");
    if (interactions.size() > kMaxLayers)
        reader.malformed(interactions.size(), " interactions, the limit is ", kMaxLayers);
    InteractionContext context;
    context.element_count = weights.element_count();
    context.basis_count = weights.radial.basis_count;
    context.harmonics = load_harmonics(reader.at("spherical_harmonics"));
    weights.max_degree = context.harmonics.block_count() - 1;

    Irreps features = first_irreps(weights);
    for (size_t i = 0; i < interactions.size(); ++i) {
        const ModuleReader& product = products[i];
        if (!product.is("EquivariantProductBasisBlock"))
            product.unsupported("product class ", product.class_name(), " is not implemented");
        product.expect_children({"symmetric_contractions", "linear"});
        Layer layer;
        layer.interaction = load_interaction(interactions[i], context, features);
        layer.contraction = load_contraction(product.at("symmetric_contractions"), weights.element_count());
        layer.linear = load_linear(product.at("linear"));
        layer.uses_skip = product.flag("use_sc", true);
        if (!layer.contraction.in.same_layout(layer.interaction.message_irreps()))
            product.malformed("takes '", layer.contraction.in.text(), "', but its input is '",
                              layer.interaction.message_irreps().text(), "'");
        if (!layer.linear.in.same_layout(layer.contraction.out))
            product.malformed("linear takes '", layer.linear.in.text(), "', but its input is '",
                              layer.contraction.out.text(), "'");
        if (layer.uses_skip && layer.interaction.skip && !layer.interaction.skip->out.same_layout(layer.linear.out))
            product.malformed("the skip connection gives '", layer.interaction.skip->out.text(), "', expected '",
                              layer.linear.out.text(), "'");
        features = layer.linear.out;
        weights.layers.push_back(std::move(layer));
    }
}

// One readout per layer, or a single one that reads the last layer.
void load_readouts(const ModuleReader& reader, Weights& weights) {
    const std::vector<ModuleReader> readouts = reader.at("readouts").children();
    const size_t layer_count = weights.layers.size();
    if (readouts.size() != 1 && readouts.size() != layer_count)
        reader.malformed(readouts.size(), " readouts for ", layer_count, " layers");
    for (size_t i = 0; i < readouts.size(); ++i) {
        Readout readout = load_readout(readouts[i], weights.head_count());
        readout.layer = static_cast<int>(readouts.size() == 1 ? layer_count - 1 : i);
        const Irreps& features = weights.layers[static_cast<size_t>(readout.layer)].linear.out;
        if (!readout.first.in.same_layout(features))
            readouts[i].malformed("takes '", readout.first.in.text(), "', but its input is '", features.text(), "'");
        weights.readouts.push_back(std::move(readout));
    }
}

void load_energies(const ModuleReader& reader, Weights& weights) {
    weights.atomic_energies = load_atomic_energies(reader.at("atomic_energies_fn"), weights);
    weights.scale.assign(static_cast<size_t>(weights.head_count()), 1.0);
    weights.shift.assign(static_cast<size_t>(weights.head_count()), 0.0);
    if (!reader.is("ScaleShiftMACE")) return;
    const ModuleReader block = reader.at("scale_shift");
    if (!block.is("ScaleShiftBlock")) block.unsupported("class ", block.class_name(), " is not implemented");
    weights.scale = load_per_head(block, "scale", weights.head_count());
    weights.shift = load_per_head(block, "shift", weights.head_count());
}

// A file for LAMMPS wraps the model and fixes the head.
Weights load_wrapped(const ModuleReader& reader) {
    if (reader.is("LAMMPS_MACE")) {
        const ModuleReader inner = reader.at("model");
        if (inner.is("LAMMPS_MACE")) inner.malformed("a wrapper inside a wrapper");
        Weights weights = load_wrapped(inner);
        weights.fixed_head = reader.has_tensor("head") ? reader.integer("head", 0, weights.head_count() - 1) : 0;
        return weights;
    }
    if (!reader.is("MACE") && !reader.is("ScaleShiftMACE"))
        reader.unsupported("class ", reader.class_name().empty() ? "(none)" : reader.class_name(),
                           " is not implemented; MACE and ScaleShiftMACE are");
    reader.expect_children({"node_embedding", "joint_embedding", "embedding_readout", "radial_embedding",
                            "spherical_harmonics", "atomic_energies_fn", "interactions", "products", "readouts",
                            "scale_shift", "pair_repulsion_fn"});
    Weights weights;
    weights.class_name = reader.class_name();
    load_inputs(reader, weights);
    load_layers(reader, weights);
    load_readouts(reader, weights);
    load_energies(reader, weights);
    return weights;
}

}  // namespace

int Weights::descriptor_count() const {
    int count = 0;
    for (const Layer& layer : layers) count += layer.linear.out.copies_of(Irrep{});
    return count;
}

Weights load_weights(const Module& root) {
    LoadBudget budget(root);
    return load_wrapped(ModuleReader(root, "", budget));
}

std::string why_not_runnable(const Module& root) {
    try {
        load_weights(root);
        return {};
    } catch (const Error& error) {
        return error.what();
    } catch (const std::bad_alloc&) {
        return "there is not enough memory to load the model";
    }
}

}  // namespace mlff::mace
