// SPDX-License-Identifier: MIT
// The parts of load_weights, one per kind of module. All throw Error{format | unsupported} that names the module.
#pragma once

#include <optional>
#include <vector>

#include "equivariant/weights/module_reader.h"
#include "mace/weights/weights.h"

namespace mlff::mace {

// load_linear.cpp
Linear load_linear(const ModuleReader& reader);
Linear load_element_linear(const ModuleReader& reader, int element_count);  // a tensor product with the one-hot element
// A linear map of the one-hot element: [element][width of its output].
std::vector<double> load_element_table(const ModuleReader& reader, int element_count);
// The argument lists of the `instructions` of an e3nn module; nothing if the file has none (cuequivariance).
std::optional<std::vector<JsonValue>> instruction_arguments(const ModuleReader& reader);

// load_network.cpp
Activation load_activation(const ModuleReader& reader);   // e3nn's normalize2mom
Activation load_activations(const ModuleReader& reader);  // e3nn's Activation: one function shared by all blocks
Activation named_activation(const ModuleReader& reader, const JsonValue* function, std::string_view if_absent);
DenseNetwork load_network(const ModuleReader& reader);
DenseNetwork load_sequential(const ModuleReader& reader);

// load_radial.cpp
RadialEmbedding load_radial_embedding(const ModuleReader& reader, const std::vector<int>& atomic_numbers);
PairRepulsion load_repulsion(const ModuleReader& reader, const std::vector<int>& atomic_numbers);
Irreps load_harmonics(const ModuleReader& reader);

// load_embedding.cpp
JointEmbedding load_joint_embedding(const ModuleReader& reader, int channel_count);

// load_convolution.cpp
Convolution load_convolution(const ModuleReader& reader, const Irreps& harmonics);

// load_interaction.cpp
struct InteractionContext {
    int element_count = 0;
    int basis_count = 0;
    Irreps harmonics;
};
Interaction load_interaction(const ModuleReader& reader, const InteractionContext& context, const Irreps& features);

// load_contraction.cpp
SymmetricContraction load_contraction(const ModuleReader& reader, int element_count);

// load_readout.cpp
Readout load_readout(const ModuleReader& reader, int head_count);

}  // namespace mlff::mace
