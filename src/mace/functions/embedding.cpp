// SPDX-License-Identifier: MIT
#include "mace/functions/embedding.h"

#include <cmath>

#include "core/error.h"
#include "equivariant/dense_network.h"
#include "equivariant/linear.h"

namespace mlff::mace {
namespace {

void append_input(const JointEmbedding::Input& input, const SystemView& system, std::vector<double>& embedded) {
    const bool is_charge = input.quantity == JointEmbedding::Quantity::total_charge;
    const double value = is_charge ? system.total_charge : system.spin_multiplicity;
    if (!input.categorical) {
        NetworkPass pass(input.network);
        const double* output = pass.compute(&value);
        embedded.insert(embedded.end(), output, output + input.width);
        return;
    }
    const double row = value + input.offset;
    if (!(row >= 0 && row < input.row_count) || row != std::floor(row))
        fail(Status::system, is_charge ? "a total charge of " : "a spin multiplicity of ", value,
             " is not known to the model; it accepts whole numbers from ", -input.offset, " to ",
             input.row_count - 1 - input.offset);
    const double* begin = input.table.data() + static_cast<int64_t>(row) * input.width;
    embedded.insert(embedded.end(), begin, begin + input.width);
}

}  // namespace

void compute_embedding(const Weights& weights, const SystemView& system, std::span<const int> elements,
                       std::vector<double>& features) {
    const auto channels = static_cast<size_t>(weights.channel_count);
    std::vector<double> common(channels, 0.0);
    if (weights.joint_embedding) {
        std::vector<double> embedded;
        for (const JointEmbedding::Input& input : weights.joint_embedding->inputs)
            append_input(input, system, embedded);
        NetworkPass pass(weights.joint_embedding->projection);
        const double* projected = pass.compute(embedded.data());
        common.assign(projected, projected + channels);
    }
    features.resize(elements.size() * channels);
    for (size_t atom = 0; atom < elements.size(); ++atom)
        for (size_t u = 0; u < channels; ++u)
            features[atom * channels + u] =
                weights.node_embedding[static_cast<size_t>(elements[atom]) * channels + u] + common[u];
}

double embedding_energy(const Weights& weights, int head, int element, const double* features) {
    if (!weights.embedding_readout) return 0;
    std::vector<double> columns(static_cast<size_t>(weights.embedding_readout->out.dimension()));
    compute_linear(*weights.embedding_readout, element, features, columns.data());
    return columns[columns.size() == 1 ? 0 : static_cast<size_t>(head)];
}

double atom_energy(const Weights& weights, int head, int element, double interaction_energy) {
    const auto h = static_cast<size_t>(head);
    return weights.atomic_energies[h * weights.atomic_numbers.size() + static_cast<size_t>(element)] +
           (weights.scale[h] * interaction_energy + weights.shift[h]);
}

}  // namespace mlff::mace
