// SPDX-License-Identifier: MIT
// Loads the embeddings of total charge and spin.
#include "mace/weights/loaders.h"

namespace mlff::mace {
namespace {

JointEmbedding::Quantity quantity_named(const ModuleReader& reader, const std::string& name) {
    if (name == "total_charge") return JointEmbedding::Quantity::total_charge;
    if (name == "total_spin") return JointEmbedding::Quantity::total_spin;
    reader.unsupported("input '", name, "' is not implemented; only total_charge and total_spin are");
}

const JsonValue& spec_named(const ModuleReader& reader, const std::string& name) {
    const JsonValue* specs = reader.attribute("specs");
    if (!specs || !specs->is_object() || !specs->contains(name) || !(*specs)[name].is_object())
        reader.malformed("no specs for '", name, "'");
    const JsonValue& spec = (*specs)[name];
    if (spec.contains("per") && spec["per"] != "graph")
        reader.unsupported("input '", name, "' is per ", spec["per"].dump(), "; only inputs per graph are implemented");
    return spec;
}

JointEmbedding::Input load_input(const ModuleReader& reader, const ModuleReader& embedder, const std::string& name) {
    const JsonValue& spec = spec_named(reader, name);
    JointEmbedding::Input input;
    input.quantity = quantity_named(reader, name);
    const JsonValue type = spec.contains("type") ? spec["type"] : JsonValue();
    input.categorical = type == "categorical";
    if (input.categorical) {
        if (!embedder.is("Embedding")) embedder.unsupported("class ", embedder.class_name(), " is not implemented");
        const Tensor& table = embedder.tensor("weight");
        if (table.shape.size() != 2 || table.shape[0] < 1 || table.shape[1] < 1 || table.shape[0] > 1 << 20 ||
            table.shape[1] > 1 << 20)
            embedder.malformed("tensor 'weight' has shape ", shape_text(table.shape), ", expected a table");
        input.row_count = static_cast<int>(table.shape[0]);
        input.width = static_cast<int>(table.shape[1]);
        input.table = embedder.values("weight");
        if (spec.contains("offset")) {
            const auto offset = json_integer(spec["offset"], -(1 << 20), 1 << 20);
            if (!offset) reader.malformed("the offset of '", name, "' is not a whole number");
            input.offset = *offset;
        }
    } else if (type == "continuous") {
        input.network = load_sequential(embedder);
        if (input.network.in_width() != 1)
            embedder.malformed("takes ", input.network.in_width(), " inputs, expected one");
        input.width = input.network.out_width();
    } else {
        reader.unsupported("input '", name, "' of type ", type.dump(), " is not implemented");
    }
    return input;
}

}  // namespace

JointEmbedding load_joint_embedding(const ModuleReader& reader, int channel_count) {
    if (!reader.is("GenericJointEmbedding")) reader.unsupported("class ", reader.class_name(), " is not implemented");
    reader.expect_children({"embedders", "project"});
    JointEmbedding embedding;
    int width = 0;
    const ModuleReader embedders = reader.at("embedders");
    for (const auto& [name, child] : embedders.module().children) {
        embedding.inputs.push_back(load_input(reader, embedders.at(name), name));
        width += embedding.inputs.back().width;
        if (width > 1 << 20) reader.malformed("the embeddings are too wide");
    }
    embedding.projection = load_sequential(reader.at("project"));
    if (embedding.projection.in_width() != width || embedding.projection.out_width() != channel_count)
        reader.malformed("projects ", embedding.projection.in_width(), " inputs to ", embedding.projection.out_width(),
                         ", expected ", width, " to ", channel_count);
    return embedding;
}

}  // namespace mlff::mace
