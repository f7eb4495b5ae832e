// SPDX-License-Identifier: MIT
// Loads linear maps between irreps, in the layouts of e3nn (with or without an explicit list of paths) and of
// cuequivariance. All of them store the weights flat: path after path, input-major, [copies in][(elements)][copies
// out].
#include <cmath>

#include "mace/weights/loaders.h"

namespace mlff::mace {
namespace {

int64_t product(int a, int b, int c) { return int64_t{a} * b * c; }

// The default paths of e3nn: every pair of blocks with the same irrep.
std::vector<Linear::Path> default_paths(const Irreps& in, const Irreps& out) {
    std::vector<Linear::Path> paths;
    for (int i = 0; i < in.block_count(); ++i)
        for (int o = 0; o < out.block_count(); ++o)
            if (in[i].irrep == out[o].irrep) paths.push_back({i, o, {}});
    return paths;
}

bool close_to(const JsonValue& value, double expected) {
    return value.is_number() && std::abs(value.number() - expected) <= 1e-6 * std::abs(expected);
}

// An instruction is (in, out, shape, factor) in a Linear, and (in, 0, out, mode, has weights, factor, shape) in a
// tensor product; in = -1 is a bias. Rejects a list that differs from the default.
void check_instructions(const ModuleReader& reader, const Linear& linear, bool is_product) {
    const auto list = instruction_arguments(reader);
    if (!list) return;
    const size_t out_at = is_product ? 2 : 1;
    const size_t factor_at = is_product ? 5 : 3;
    size_t path = 0;
    for (const JsonValue& arguments : *list) {
        if (arguments.size() <= factor_at) reader.malformed("an instruction is too short");
        if (!is_product && json_integer(arguments[0], -1, -1)) continue;
        if (path == linear.paths.size())
            reader.unsupported("its paths differ from those that irreps_in and irreps_out imply");
        const Linear::Path& expected = linear.paths[path++];
        const Irrep irrep = linear.out[expected.out_block].irrep;
        const double squared = linear.in.copies_of(irrep) * (is_product ? linear.element_count : 1);
        const double factor = std::sqrt((is_product ? irrep.dimension() : 1) / squared);
        if (json_integer(arguments[0], 0, 1 << 20) != expected.in_block ||
            json_integer(arguments[out_at], 0, 1 << 20) != expected.out_block ||
            !close_to(arguments[factor_at], factor))
            reader.unsupported("path ", path - 1, " differs from the one that its irreps imply");
    }
    if (path != linear.paths.size())
        reader.unsupported("its paths differ from those that irreps_in and irreps_out imply");
}

// Splits the flat weights into paths; [in][element][out] in the file becomes [element][in][out].
void fill_paths(const ModuleReader& reader, Linear& linear) {
    if (linear.in.dimension() == 0 || linear.out.dimension() == 0) reader.malformed("has no inputs or no outputs");
    linear.paths = default_paths(linear.in, linear.out);
    int64_t expected = 0;
    for (const Linear::Path& path : linear.paths)
        expected += product(linear.in[path.in_block].multiplicity, linear.element_count,
                            linear.out[path.out_block].multiplicity);
    const Tensor& tensor = reader.tensor("weight");
    const bool flat = tensor.shape.size() == 1 || (tensor.shape.size() == 2 && tensor.shape[0] == 1);
    if (!flat || tensor.element_count() != expected)
        reader.malformed("tensor 'weight' has shape ", shape_text(tensor.shape), ", but ", linear.in.text(), " -> ",
                         linear.out.text(), " takes ", expected, " weights");
    const std::vector<double> weights = reader.values("weight");
    size_t next = 0;
    for (Linear::Path& path : linear.paths) {
        const auto in_count = static_cast<size_t>(linear.in[path.in_block].multiplicity);
        const auto out_count = static_cast<size_t>(linear.out[path.out_block].multiplicity);
        const auto elements = static_cast<size_t>(linear.element_count);
        const int fan_in = linear.in.copies_of(linear.out[path.out_block].irrep) * linear.element_count;
        path.weight.resize(in_count * elements * out_count);
        for (size_t u = 0; u < in_count; ++u)
            for (size_t z = 0; z < elements; ++z)
                for (size_t w = 0; w < out_count; ++w)
                    path.weight[(z * in_count + u) * out_count + w] = weights[next++] / std::sqrt(double(fan_in));
    }
}

// The file's bias has only the scalars; ours has an entry for every component.
void fill_bias(const ModuleReader& reader, Linear& linear) {
    if (!reader.has_tensor("bias") || reader.tensor("bias").element_count() == 0) return;
    const std::vector<double> bias = reader.values("bias", {linear.out.copies_of({0, 1})});
    linear.bias.assign(static_cast<size_t>(linear.out.dimension()), 0.0);
    size_t next = 0;
    for (const IrrepBlock& block : linear.out.blocks()) {
        if (!block.irrep.is_scalar()) continue;
        for (int u = 0; u < block.multiplicity; ++u) linear.bias[static_cast<size_t>(block.offset + u)] = bias[next++];
    }
}

}  // namespace

std::optional<std::vector<JsonValue>> instruction_arguments(const ModuleReader& reader) {
    const JsonValue* list = reader.attribute("instructions");
    if (!list) return std::nullopt;
    if (!list->is_array()) reader.malformed("'instructions' is not a list");
    std::vector<JsonValue> result;
    for (const JsonValue& item : *list) {
        const bool wrapped = item.is_object() && item.contains("arguments");
        const JsonValue& arguments = wrapped ? item["arguments"] : item;
        if (!arguments.is_array() || arguments.empty())
            reader.malformed("'instructions' holds something that is not an instruction");
        result.push_back(arguments);
    }
    return result;
}

Linear load_linear(const ModuleReader& reader) {
    if (!reader.is("Linear")) reader.unsupported("class ", reader.class_name(), ", expected a linear map");
    Linear linear;
    linear.in = reader.irreps("irreps_in");
    linear.out = reader.irreps("irreps_out");
    fill_paths(reader, linear);
    fill_bias(reader, linear);
    check_instructions(reader, linear, false);
    return linear;
}

Linear load_element_linear(const ModuleReader& reader, int element_count) {
    if (!reader.is("FullyConnectedTensorProduct"))
        reader.unsupported("class ", reader.class_name(), ", expected a product with the element");
    const Irreps elements = reader.irreps("irreps_in2");
    if (elements.block_count() != 1 || !elements[0].irrep.is_scalar() || elements[0].multiplicity != element_count)
        reader.malformed("irreps_in2 is '", elements.text(), "', but there are ", element_count, " elements");
    Linear linear;
    linear.in = reader.irreps("irreps_in1");
    linear.out = reader.irreps("irreps_out");
    linear.element_count = element_count;
    fill_paths(reader, linear);
    check_instructions(reader, linear, true);
    return linear;
}

std::vector<double> load_element_table(const ModuleReader& reader, int element_count) {
    const Linear linear = load_linear(reader);
    const bool one_block = linear.in.block_count() == 1 && linear.out.block_count() == 1 && linear.paths.size() == 1;
    if (!one_block || !linear.in.all_scalar() || linear.in.dimension() != element_count || !linear.bias.empty())
        reader.malformed("maps ", linear.in.text(), " to ", linear.out.text(), ", but there are ", element_count,
                         " elements");
    return linear.paths[0].weight;
}

}  // namespace mlff::mace
