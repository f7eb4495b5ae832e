// SPDX-License-Identifier: MIT
// Loads the tensor product of features and harmonics. Its paths follow from the irreps: for each input block, each
// harmonic and each degree that both couple to, a path exists if the output has it. Paths are sorted stably by output
// irrep (degree, odd before even).
#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "equivariant/wigner.h"
#include "mace/weights/loaders.h"

namespace mlff::mace {
namespace {

constexpr size_t kMaxPaths = 512;

struct Candidate {
    Irrep irrep;
    int in_block;
    int degree;
};

std::vector<Candidate> sorted_candidates(const ModuleReader& reader, const Irreps& in, const Irreps& harmonics,
                                         const Irreps& out) {
    std::vector<Candidate> paths;
    for (int i = 0; i < in.block_count(); ++i)
        for (int j = 0; j < harmonics.block_count(); ++j)
            for (int l = std::abs(in[i].irrep.degree - j); l <= std::min(in[i].irrep.degree + j, kMaxDegree); ++l) {
                const Irrep irrep = {l, in[i].irrep.parity * harmonics[j].irrep.parity};
                if (out.copies_of(irrep) == 0) continue;
                paths.push_back({irrep, i, j});
                if (paths.size() > kMaxPaths) reader.malformed("more than ", kMaxPaths, " paths");
            }
    std::stable_sort(paths.begin(), paths.end(), [](const Candidate& a, const Candidate& b) {
        return std::pair(a.irrep.degree, a.irrep.parity) < std::pair(b.irrep.degree, b.irrep.parity);
    });
    return paths;
}

// If no degree is zero, e3nn stores the 3j symbols in a buffer in the model's precision, and computes with these.
std::vector<double> coupling_tensor(const ModuleReader& reader, int l1, int l2, int l3) {
    std::vector<double> exact = wigner_3j(l1, l2, l3);
    const auto compiled = reader.find("_compiled_main_left_right");
    const std::string name = concat("_w3j_", l1, "_", l2, "_", l3);
    if (!compiled || !compiled->has_tensor(name) || l1 == 0 || l2 == 0 || l3 == 0) return exact;
    const std::vector<double> stored = compiled->values(name, {2 * l1 + 1, 2 * l2 + 1, 2 * l3 + 1});
    for (size_t i = 0; i < stored.size(); ++i)
        if (!(std::abs(stored[i] - exact[i]) < 1e-2))
            compiled->malformed("tensor '", name, "' is not the 3j symbol of e3nn");
    return stored;
}

std::vector<Convolution::Coupling> sparse_couplings(const std::vector<double>& tensor, int l1, int l2, int l3) {
    std::vector<Convolution::Coupling> couplings;
    size_t next = 0;
    for (int a = 0; a <= 2 * l1; ++a)
        for (int b = 0; b <= 2 * l2; ++b)
            for (int c = 0; c <= 2 * l3; ++c) {
                const double value = tensor[next++];
                if (value != 0) couplings.push_back({a, l2 * l2 + b, c, std::sqrt(2.0 * l3 + 1) * value});
            }
    return couplings;
}

void check_instructions(const ModuleReader& reader, const Convolution& convolution) {
    const auto list = instruction_arguments(reader);
    if (!list) return;
    if (list->size() != convolution.paths.size())
        reader.unsupported("its paths differ from those that its irreps imply");
    for (size_t k = 0; k < list->size(); ++k) {
        const JsonValue& arguments = (*list)[k];
        const Convolution::Path& path = convolution.paths[k];
        if (arguments.size() < 6 || !arguments[5].is_number()) reader.malformed("instruction ", k, " is too short");
        const double factor = std::sqrt(static_cast<double>(convolution.out[path.out_block].irrep.dimension()));
        if (json_integer(arguments[0], 0, 1 << 20) != path.in_block ||
            json_integer(arguments[1], 0, 1 << 20) != path.degree || arguments[3] != "uvu" ||
            std::abs(arguments[5].number() - factor) > 1e-6)
            reader.unsupported("path ", k, " differs from the one that its irreps imply");
    }
}

}  // namespace

Convolution load_convolution(const ModuleReader& reader, const Irreps& harmonics) {
    if (!reader.is("TensorProduct") && !reader.is("ChannelWiseTensorProduct"))
        reader.unsupported("tensor product ", reader.class_name(), " is not implemented");
    Convolution convolution;
    convolution.in = reader.irreps("irreps_in1");
    const Irreps second = reader.irreps("irreps_in2");
    const Irreps out = reader.irreps("irreps_out");
    if (second.text() != harmonics.text())
        reader.malformed("irreps_in2 is '", second.text(), "', but the harmonics are '", harmonics.text(), "'");

    std::map<std::tuple<int, int, int>, std::vector<Convolution::Coupling>> known;
    for (const Candidate& candidate : sorted_candidates(reader, convolution.in, harmonics, out)) {
        const IrrepBlock& block = convolution.in[candidate.in_block];
        const auto degrees = std::tuple(block.irrep.degree, candidate.degree, candidate.irrep.degree);
        const auto [l1, l2, l3] = degrees;
        if (!known.contains(degrees))
            known[degrees] = sparse_couplings(coupling_tensor(reader, l1, l2, l3), l1, l2, l3);
        reader.take_numbers(
            static_cast<int64_t>(known[degrees].size() * sizeof(Convolution::Coupling) / sizeof(double)));
        const int out_block = convolution.out.block_count();
        convolution.out.append(block.multiplicity, candidate.irrep);
        convolution.paths.push_back({.in_block = candidate.in_block,
                                     .degree = candidate.degree,
                                     .out_block = out_block,
                                     .weight_offset = convolution.weight_count,
                                     .couplings = known[degrees]});
        convolution.weight_count += block.multiplicity;
    }
    if (!convolution.out.same_layout(out))
        reader.unsupported("irreps_out is '", out.text(), "', but its paths produce '", convolution.out.text(), "'");
    check_instructions(reader, convolution);
    return convolution;
}

}  // namespace mlff::mace
