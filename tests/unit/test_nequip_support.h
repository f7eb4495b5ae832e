// SPDX-License-Identifier: MIT
// What the tests of the NequIP family share: golden files, and energies from the weights alone, in the plainest way.
#pragma once

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "equivariant/edge_harmonics.h"
#include "formats/module_tree.h"
#include "nequip/weights/weights.h"
#include "test_mace_support.h"

namespace nequip_test {

struct Golden {
    std::string name;
    std::string model_path;
    nlohmann::json facts;

    bool is_nequix() const { return facts["container"] == "nqx"; }
    bool is_readable() const { return facts["container"] != "deployed_serial"; }
};

// All goldens by name: those of the repository and, where it is to be found, the larger set, which has more systems.
inline const std::map<std::string, Golden>& goldens() {
    static const std::map<std::string, Golden> all = [] {
        std::map<std::string, Golden> found;
        const auto add = [&](const std::filesystem::path& directory) {
            if (!std::filesystem::is_directory(directory)) return;
            for (const auto& file : std::filesystem::directory_iterator(directory)) {
                if (file.path().extension() != ".json") continue;
                std::ifstream text(file.path());
                nlohmann::json facts = nlohmann::json::parse(text);
                if (!facts.is_object() || !facts.contains("model_file") || !facts.contains("systems")) continue;
                const auto model = directory / facts["model_file"].get<std::string>();
                const std::string name = file.path().stem().string();
                found[name] = {name, model.string(), std::move(facts)};
            }
        };
        add(MLFF_NEQUIP_GOLDEN_DIR);
        std::filesystem::path shared = MLFF_SHARED_GOLDEN_DIR;
        if (const char* other = std::getenv("MLFF_SHARED_GOLDENS")) shared = other;
        add(shared / ".." / "sevennet");
        add(shared / ".." / "sevennet" / "nequix");
        return found;
    }();
    return all;
}

inline mlff::nequip::Weights load(const Golden& golden, int head = 0) {
    return mlff::nequip::load_weights(mlff::open_module_file(golden.model_path).root, head);
}

// The energy of each atom. Written for clarity: every edge stands alone, nothing is shared.
inline std::vector<double> atom_energies(const mlff::nequip::Weights& weights, const mace_test::System& system) {
    using namespace mlff;
    NeighborOptions options;
    options.cutoff = weights.cutoff;
    const BruteForceEdges edges = brute_force_neighbors(system.view(), options);
    const size_t atoms = system.numbers.size();
    std::vector<int> elements;
    for (int number : system.numbers) elements.push_back(weights.element_of(number));
    const auto width = static_cast<size_t>(weights.first_irreps.dimension());
    std::vector<std::vector<double>> features;
    for (int element : elements) {
        const auto first = weights.first_features.begin() + static_cast<std::ptrdiff_t>(element * width);
        features.emplace_back(first, first + static_cast<std::ptrdiff_t>(width));
    }
    const auto sized = [](const Irreps& irreps) {
        return std::vector<double>(static_cast<size_t>(irreps.dimension()), 0.0);
    };
    for (const nequip::Layer& layer : weights.layers) {
        std::vector<std::vector<double>> senders(atoms, sized(layer.up.out)), next;
        for (size_t i = 0; i < atoms; ++i) compute_linear(layer.up, elements[i], features[i].data(), senders[i].data());
        NetworkPass network(layer.radial_network);
        for (size_t i = 0; i < atoms; ++i) {
            std::vector<double> sum = sized(layer.convolution.out);
            for (auto e = static_cast<size_t>(edges.first[i]); e < static_cast<size_t>(edges.first[i + 1]); ++e) {
                const auto sender = static_cast<size_t>(edges.sender[e]);
                const double r = edges.distance[e];
                const double* v = &edges.vector[3 * e];  // to the sender
                std::vector<double> harmonics(static_cast<size_t>(harmonic_count(weights.max_degree)));
                compute_edge_harmonics(weights.max_degree, {-v[0] / r, -v[1] / r, -v[2] / r}, harmonics.data());
                std::vector<double> basis(static_cast<size_t>(weights.radial.basis_count));
                double cutoff = 0;
                compute_radial(weights.radial, elements[sender], elements[i], r, basis.data(), &cutoff);
                const double* found = network.compute(basis.data());
                std::vector<double> factors(found, found + layer.convolution.weight_count);
                for (const Convolution::Path& path : layer.convolution.paths)
                    for (int u = 0; u < layer.convolution.in[path.in_block].multiplicity; ++u)
                        factors[static_cast<size_t>(path.weight_offset + u)] *= std::pow(r, path.distance_power);
                compute_message(layer.convolution, senders[sender].data(), harmonics.data(), factors.data(),
                                sum.data());
            }
            std::vector<double> message = sized(layer.gate.in), self = message, out = sized(layer.gate.out);
            compute_linear(layer.message, elements[i], sum.data(), message.data());
            compute_linear(layer.self_connection, elements[i], features[i].data(), self.data());
            for (size_t k = 0; k < message.size(); ++k) message[k] += self[k];
            if (layer.norm) {
                double squares = 0;
                for (const IrrepBlock& block : layer.gate.in.blocks())
                    for (int k = block.offset; k < block.offset + block.size(); ++k)
                        squares += std::pow(message[static_cast<size_t>(k)] / block.irrep.dimension(), 2);
                const double factor = 1 / std::sqrt(squares / layer.gate.in.block_count() + layer.norm->epsilon);
                size_t copy = 0, k = 0;
                for (const IrrepBlock& block : layer.gate.in.blocks())
                    for (int u = 0; u < block.multiplicity; ++u, ++copy)
                        for (int m = 0; m < block.irrep.dimension(); ++m)
                            message[k++] *= factor * layer.norm->scale[copy];
            }
            compute_gate(layer.gate, message.data(), out.data());
            next.push_back(std::move(out));
        }
        features = std::move(next);
    }
    std::vector<double> energies;
    NetworkPass readout(weights.readout);
    for (size_t i = 0; i < atoms; ++i) {
        std::vector<double> scalars;
        for (const IrrepBlock& block : weights.layers.back().gate.out.blocks())
            if (block.irrep.is_scalar())
                scalars.insert(scalars.end(), features[i].begin() + block.offset,
                               features[i].begin() + block.offset + block.size());
        const auto element = static_cast<size_t>(elements[i]);
        energies.push_back(weights.scale[element] * *readout.compute(scalars.data()) + weights.shift[element]);
    }
    return energies;
}

}  // namespace nequip_test
