// SPDX-License-Identifier: MIT
// Linear maps of e3nn, whose irreps follow from the settings, not from the file.
#include <cmath>

#include "nequip/weights/loaders.h"

namespace mlff::nequip {
namespace {

constexpr Irrep kScalar = {0, 1};

// Every pair of blocks with the same irrep, by input.
std::vector<Linear::Path> matching_paths(const Irreps& in, const Irreps& out) {
    std::vector<Linear::Path> paths;
    for (int i = 0; i < in.block_count(); ++i)
        for (int o = 0; o < out.block_count(); ++o)
            if (in[i].irrep == out[o].irrep) paths.push_back({i, o, {}});
    return paths;
}

// The flat weights; their number is checked before they are read.
std::vector<double> flat_weights(const ModuleReader& reader, const Linear& linear, int species_count,
                                 const Modality& modality) {
    int64_t expected = int64_t{modality.count} * linear.out.copies_of(kScalar);
    for (const Linear::Path& path : linear.paths)
        expected +=
            int64_t{linear.in[path.in_block].multiplicity} * linear.out[path.out_block].multiplicity * species_count;
    const Tensor& tensor = reader.tensor("weight");
    if (tensor.shape.size() != 1 || tensor.shape[0] != expected)
        reader.malformed("tensor 'weight' has shape ", shape_text(tensor.shape), ", but ", linear.in.text(), " -> ",
                         linear.out.text(), " takes ", expected, " weights");
    return reader.values("weight");
}

// Calls visit(index of an output that is 0e) for each of them.
template <class Visit>
void for_each_scalar_output(const Irreps& out, const Visit& visit) {
    for (const IrrepBlock& block : out.blocks())
        if (block.irrep.is_scalar())
            for (int u = 0; u < block.multiplicity; ++u) visit(static_cast<size_t>(block.offset + u));
}

// The file's bias has only the scalars; ours has an entry for every component.
void load_bias(const ModuleReader& reader, Linear& linear) {
    if (!reader.has_tensor("bias") || reader.tensor("bias").element_count() == 0) return;
    const std::vector<double> bias = reader.values("bias", {linear.out.copies_of(kScalar)});
    size_t next = 0;
    for_each_scalar_output(linear.out, [&](size_t at) { linear.bias[at] += bias[next++]; });
}

}  // namespace

Linear load_flat_linear(const ModuleReader& reader, const Irreps& in, const Irreps& out, const Modality& modality) {
    Linear linear;
    linear.in = in;
    linear.out = out;
    linear.paths = matching_paths(in, out);
    const std::vector<double> weights = flat_weights(reader, linear, 1, modality);
    const auto fan_in = [&](const Irrep& irrep) {
        return static_cast<double>(in.copies_of(irrep) + (irrep.is_scalar() ? modality.count : 0));
    };
    size_t next = 0;
    for (Linear::Path& path : linear.paths) {
        const size_t count =
            static_cast<size_t>(in[path.in_block].multiplicity) * static_cast<size_t>(out[path.out_block].multiplicity);
        const double factor = 1 / std::sqrt(fan_in(out[path.out_block].irrep));
        path.weight.resize(count);
        for (double& weight : path.weight) weight = weights[next++] * factor;
    }
    const bool has_bias = reader.has_tensor("bias") && reader.tensor("bias").element_count() > 0;
    if (!has_bias && modality.count == 0) return linear;
    reader.take_numbers(out.dimension());
    linear.bias.assign(static_cast<size_t>(out.dimension()), 0.0);
    load_bias(reader, linear);
    if (modality.count == 0) return linear;
    // [modality][copies out] of each block of scalars, block after block
    const double factor = 1 / std::sqrt(fan_in(kScalar));
    for (const IrrepBlock& block : out.blocks()) {
        if (!block.irrep.is_scalar()) continue;
        const auto copies = static_cast<size_t>(block.multiplicity);
        for (size_t u = 0; u < copies; ++u)
            linear.bias[static_cast<size_t>(block.offset) + u] +=
                weights[next + static_cast<size_t>(modality.chosen) * copies + u] * factor;
        next += static_cast<size_t>(modality.count) * copies;
    }
    return linear;
}

Linear load_species_linear(const ModuleReader& reader, const Irreps& in, const Irreps& out, int species_count,
                           const std::vector<int>& species) {
    Linear linear;
    linear.in = in;
    linear.out = out;
    linear.element_count = static_cast<int>(species.size());
    linear.paths = matching_paths(in, out);
    if (reader.has_tensor("bias") && reader.tensor("bias").element_count() > 0)
        reader.unsupported("a bias in a product with the species is not implemented");
    const std::vector<double> weights = flat_weights(reader, linear, species_count, {});
    size_t first = 0;
    for (Linear::Path& path : linear.paths) {
        const auto in_count = static_cast<size_t>(in[path.in_block].multiplicity);
        const auto out_count = static_cast<size_t>(out[path.out_block].multiplicity);
        const auto in_file = static_cast<size_t>(species_count);
        const double factor =
            1 / std::sqrt(static_cast<double>(in.copies_of(out[path.out_block].irrep)) * species_count);
        path.weight.reserve(species.size() * in_count * out_count);
        for (int index : species)
            for (size_t u = 0; u < in_count; ++u)
                for (size_t w = 0; w < out_count; ++w)
                    path.weight.push_back(factor *
                                          weights[first + (u * in_file + static_cast<size_t>(index)) * out_count + w]);
        first += in_count * in_file * out_count;
    }
    return linear;
}

void scale_weights(Linear& linear, double factor) {
    for (Linear::Path& path : linear.paths)
        for (double& weight : path.weight) weight *= factor;
}

}  // namespace mlff::nequip
