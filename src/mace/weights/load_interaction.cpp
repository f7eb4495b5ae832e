// SPDX-License-Identifier: MIT
// Loads the six interaction blocks of MACE into the common form `Interaction`.
#include "mace/weights/loaders.h"

namespace mlff::mace {
namespace {

enum class Kind { plain, residual, density, density_residual, attention, non_linear };

Kind kind_of(const ModuleReader& reader) {
    if (reader.is("RealAgnosticInteractionBlock")) return Kind::plain;
    if (reader.is("RealAgnosticResidualInteractionBlock")) return Kind::residual;
    if (reader.is("RealAgnosticDensityInteractionBlock")) return Kind::density;
    if (reader.is("RealAgnosticDensityResidualInteractionBlock")) return Kind::density_residual;
    if (reader.is("RealAgnosticAttResidualInteractionBlock")) return Kind::attention;
    if (reader.is("RealAgnosticResidualNonLinearInteractionBlock")) return Kind::non_linear;
    reader.unsupported("interaction class ", reader.class_name(), " is not implemented");
}

void expect_layout(const ModuleReader& reader, std::string_view what, const Irreps& found, const Irreps& expected) {
    if (!found.same_layout(expected))
        reader.malformed(what, " takes '", found.text(), "', but its input is '", expected.text(), "'");
}

// Determines the divisor, from two parts of the block.
void load_divisor(const ModuleReader& reader, Kind kind, Interaction& interaction) {
    if (const auto density = reader.find("density_fn")) interaction.density_network = load_network(*density);
    switch (kind) {
        case Kind::plain:
        case Kind::residual:
        case Kind::attention:
            if (interaction.density_network)
                reader.unsupported("a density_fn in ", reader.class_name(), " is not implemented");
            interaction.divisor_constant = reader.positive("avg_num_neighbors");
            break;
        case Kind::density:
        case Kind::density_residual:
            if (!interaction.density_network) reader.malformed("no module 'density_fn'");
            interaction.divisor_constant = 1;
            interaction.divisor_density = 1;
            break;
        case Kind::non_linear:
            if (!interaction.density_network) reader.malformed("no module 'density_fn'");
            interaction.divisor_constant = reader.number("alpha");
            interaction.divisor_density = reader.number("beta");
            break;
    }
}

// Loads a gate: scalars, gates and gated blocks, and the two functions, from MACE's class or from e3nn's.
Gate load_gate(const ModuleReader& reader) {
    Gate gate;
    const Irreps scalars = reader.irreps("irreps_scalars");
    const Irreps gates = reader.irreps("irreps_gates");
    const Irreps gated = reader.irreps("irreps_gated");
    if (reader.is("GatedEquivariantBlock")) {
        gate.scalar_activation = named_activation(reader, reader.attribute("_act_scalar"), "silu");
        gate.gate_activation = named_activation(reader, reader.attribute("_act_gate"), "sigmoid");
        gate.scalar_activation.factor = reader.number("_scalar_cst");
        gate.gate_activation.factor = reader.number("_gate_cst");
    } else if (reader.is("Gate")) {
        gate.scalar_activation = load_activations(reader.at("act_scalars"));
        if (gates.dimension() > 0) gate.gate_activation = load_activations(reader.at("act_gates"));
    } else {
        reader.unsupported("gate class ", reader.class_name(), " is not implemented");
    }
    int gated_copies = 0;
    for (const Irreps* part : {&scalars, &gates, &gated})
        for (const IrrepBlock& block : part->blocks()) gate.in.append(block.multiplicity, block.irrep);
    for (const Irreps* part : {&scalars, &gated})
        for (const IrrepBlock& block : part->blocks()) gate.out.append(block.multiplicity, block.irrep);
    for (const IrrepBlock& block : gated.blocks()) gated_copies += block.multiplicity;
    if (!scalars.all_scalar() || !gates.all_scalar() || gates.dimension() != gated_copies)
        reader.malformed("gates '", gates.text(), "' do not fit '", gated.text(), "'");
    gate.scalar_count = scalars.dimension();
    gate.gate_count = gates.dimension();
    // e3nn sorts its input. If that changes the order, gate.in is not the order of the features.
    if (reader.attribute("_irreps_in") && !gate.in.same_layout(reader.irreps("_irreps_in")))
        reader.unsupported(
            "the inputs of the gate are not in the order scalars, gates, gated, which is not implemented");
    return gate;
}

void load_edge_inputs(const ModuleReader& reader, Kind kind, const InteractionContext& context, const Irreps& features,
                      Interaction& interaction) {
    if (kind == Kind::attention) {
        interaction.edge_input = Interaction::EdgeInput::features;
        interaction.down = load_linear(reader.at("linear_down"));
        expect_layout(reader, "linear_down", interaction.down->in, features);
        if (!interaction.down->out.all_scalar())
            reader.unsupported("attention on features that are not scalar is not implemented");
        interaction.edge_width = interaction.down->out.dimension();
    } else if (kind == Kind::non_linear) {
        interaction.edge_input = Interaction::EdgeInput::elements;
        interaction.sender_table = load_element_table(reader.at("source_embedding"), context.element_count);
        interaction.receiver_table = load_element_table(reader.at("target_embedding"), context.element_count);
        if (interaction.sender_table.size() != interaction.receiver_table.size())
            reader.malformed("source_embedding and target_embedding have different widths");
        interaction.edge_width = static_cast<int>(interaction.sender_table.size()) / context.element_count;
    }
}

void load_message_path(const ModuleReader& reader, Kind kind, int element_count, Interaction& interaction) {
    interaction.message = load_linear(reader.at(kind == Kind::non_linear ? "linear_1" : "linear"));
    expect_layout(reader, "linear", interaction.message.in, interaction.convolution.out);
    if (kind == Kind::non_linear) {
        Interaction::Gated gated;
        gated.residual = load_linear(reader.at("linear_res"));
        gated.gate = load_gate(reader.at("equivariant_nonlin"));
        gated.after = load_linear(reader.at("linear_2"));
        expect_layout(reader, "linear_res", gated.residual.in, interaction.up.out);
        expect_layout(reader, "the gate", gated.gate.in, interaction.message.out);
        expect_layout(reader, "the gate", gated.gate.in, gated.residual.out);
        expect_layout(reader, "linear_2", gated.after.in, gated.gate.out);
        interaction.gated = std::move(gated);
    } else if (kind == Kind::plain || kind == Kind::density) {
        interaction.message_skip = load_element_linear(reader.at("skip_tp"), element_count);
        expect_layout(reader, "skip_tp", interaction.message_skip->in, interaction.message.out);
    }
}

void check_networks(const ModuleReader& reader, const InteractionContext& context, const Interaction& interaction) {
    const int in_width = context.basis_count + 2 * interaction.edge_width;
    const auto check = [&](std::string_view name, const DenseNetwork& network, int out_width) {
        if (network.in_width() != in_width || network.out_width() != out_width)
            reader.malformed(name, " maps ", network.in_width(), " inputs to ", network.out_width(), ", expected ",
                             in_width, " to ", out_width);
    };
    check("conv_tp_weights", interaction.radial_network, interaction.convolution.weight_count);
    if (interaction.density_network) check("density_fn", *interaction.density_network, 1);
}

}  // namespace

const Irreps& Interaction::message_irreps() const {
    if (message_skip) return message_skip->out;
    return gated ? gated->after.out : message.out;
}

Interaction load_interaction(const ModuleReader& reader, const InteractionContext& context, const Irreps& features) {
    const Kind kind = kind_of(reader);
    reader.expect_children({"linear_up", "linear_down", "conv_tp", "conv_tp_weights", "linear", "linear_1", "linear_2",
                            "linear_res", "skip_tp", "skip_linear", "density_fn", "source_embedding",
                            "target_embedding", "equivariant_nonlin", "reshape"});
    Interaction interaction;
    interaction.up = load_linear(reader.at("linear_up"));
    expect_layout(reader, "linear_up", interaction.up.in, features);
    interaction.convolution = load_convolution(reader.at("conv_tp"), context.harmonics);
    expect_layout(reader, "conv_tp", interaction.convolution.in, interaction.up.out);
    interaction.radial_network = load_network(reader.at("conv_tp_weights"));
    load_edge_inputs(reader, kind, context, features, interaction);
    load_divisor(reader, kind, interaction);
    load_message_path(reader, kind, context.element_count, interaction);
    check_networks(reader, context, interaction);
    if (kind == Kind::residual || kind == Kind::density_residual)
        interaction.skip = load_element_linear(reader.at("skip_tp"), context.element_count);
    if (kind == Kind::attention) interaction.skip = load_linear(reader.at("skip_linear"));
    if (kind == Kind::non_linear) interaction.skip = load_linear(reader.at("skip_tp"));
    if (interaction.skip) expect_layout(reader, "the skip connection", interaction.skip->in, features);
    return interaction;
}

}  // namespace mlff::mace
