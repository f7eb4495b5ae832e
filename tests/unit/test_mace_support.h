// SPDX-License-Identifier: MIT
// What the tests of MACE share: golden files, a system with its own memory, one evaluation with all results.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/system_view.h"
#include "core/threads.h"
#include "formats/module_tree.h"
#include "mace/reference/evaluator.h"
#include "mace/weights/weights.h"
#include "neighbors/neighbor_list.h"

namespace mace_test {

// Directories with golden cases: the small set of the repository and, where it is to be found, the full one.
inline std::vector<std::filesystem::path> golden_directories() {
    std::vector<std::filesystem::path> found;
    const auto add = [&](const char* path) {
        if (path && *path && std::filesystem::is_directory(path)) found.emplace_back(path);
    };
#ifdef MLFF_GOLDEN_DIR
    add(MLFF_GOLDEN_DIR);
#endif
    if (const char* shared = std::getenv("MLFF_SHARED_GOLDENS")) {
        add(shared);
    } else {
#ifdef MLFF_SHARED_GOLDEN_DIR
        add(MLFF_SHARED_GOLDEN_DIR);
#endif
    }
    return found;
}

// Files with "systems", sorted by name.
inline std::vector<std::filesystem::path> golden_cases(const std::filesystem::path& directory) {
    std::vector<std::filesystem::path> found;
    for (const auto& entry : std::filesystem::directory_iterator(directory)) {
        if (entry.path().extension() != ".json") continue;
        std::ifstream file(entry.path());
        const nlohmann::json content = nlohmann::json::parse(file);
        if (content.is_object() && content.contains("systems")) found.push_back(entry.path());
    }
    std::sort(found.begin(), found.end());
    return found;
}

// The model of a golden case by its name ("p01_ss_l0_c3"), or an empty path if no directory has it.
inline std::filesystem::path golden_model(const std::string& name) {
    for (const auto& directory : golden_directories())
        for (const char* ending : {".model", ".model-lammps.pt", "_compiled.model"})
            if (std::filesystem::exists(directory / (name + ending))) return directory / (name + ending);
    return {};
}

struct System {
    std::vector<int32_t> numbers;
    std::vector<double> positions;
    mlff::Mat3 cell{};
    std::array<bool, 3> periodic{};
    double charge = 0;
    double spin = 1;

    mlff::SystemView view() const {
        mlff::SystemView result;
        result.atom_count = static_cast<int64_t>(numbers.size());
        result.atomic_numbers = numbers.data();
        result.positions = positions.data();
        result.cell = cell;
        result.periodic = periodic;
        result.total_charge = charge;
        result.spin_multiplicity = spin;
        return result;
    }
};

inline std::vector<double> flat(const nlohmann::json& array) {
    if (array.is_number()) return {array.get<double>()};
    std::vector<double> values;
    for (const auto& item : array) {
        const std::vector<double> inner = flat(item);
        values.insert(values.end(), inner.begin(), inner.end());
    }
    return values;
}

inline System read_system(const nlohmann::json& record) {
    System system;
    system.numbers = record["numbers"].get<std::vector<int32_t>>();
    system.positions = flat(record["positions"]);
    const std::vector<double> cell = flat(record["cell"]);
    for (size_t i = 0; i < 9 && cell.size() == 9; ++i) system.cell[i / 3][i % 3] = cell[i];
    for (size_t i = 0; i < 3; ++i)
        system.periodic[i] =
            record["pbc"][i].is_boolean() ? record["pbc"][i].get<bool>() : record["pbc"][i].get<int>() != 0;
    if (record.contains("charge")) system.charge = record["charge"].get<double>();
    if (record.contains("spin")) system.spin = record["spin"].get<double>();
    return system;
}

inline mlff::Edges edges_of(const mlff::BruteForceEdges& list) {
    mlff::Edges edges;
    edges.atom_count = static_cast<int64_t>(list.first.size()) - 1;
    edges.edge_count = static_cast<int64_t>(list.sender.size());
    edges.first = list.first.data();
    edges.sender = list.sender.data();
    edges.shift = list.shift.data();
    edges.vector = list.vector.data();
    edges.distance = list.distance.data();
    return edges;
}

struct Result {
    double energy = 0;
    std::vector<double> forces, virial, atom_energies, atom_virials, descriptors;
    int64_t edge_count = 0;
};

class Model {
public:
    explicit Model(const std::filesystem::path& path)
        : weights(std::make_shared<const mlff::mace::Weights>(
              mlff::mace::load_weights(mlff::open_module_file(path.string()).root))) {}
    explicit Model(mlff::mace::Weights loaded)
        : weights(std::make_shared<const mlff::mace::Weights>(std::move(loaded))) {}

    Result evaluate(const System& system, int head = 0, int threads = 1) const {
        mlff::NeighborOptions options;
        options.cutoff = weights->cutoff;
        const mlff::BruteForceEdges list = mlff::brute_force_neighbors(system.view(), options);
        mlff::ThreadTeam team(threads);
        mlff::mace::reference::ReferenceEvaluator evaluator(weights,
                                                            weights->fixed_head >= 0 ? weights->fixed_head : head);
        Result result;
        const size_t atoms = system.numbers.size();
        result.forces.resize(atoms * 3);
        result.virial.resize(9);
        result.atom_energies.resize(atoms);
        result.atom_virials.resize(atoms * 9);
        result.edge_count = static_cast<int64_t>(list.sender.size());
        const mlff::Outputs outputs = {&result.energy, result.forces.data(), result.virial.data(),
                                       result.atom_energies.data(), result.atom_virials.data()};
        evaluator.evaluate(system.view(), edges_of(list), outputs, team);
        return result;
    }

    std::shared_ptr<const mlff::mace::Weights> weights;
};

// The largest difference; infinite if the sizes differ or one of them is NaN.
inline double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
    if (a.size() != b.size()) return INFINITY;
    double largest = 0;
    for (size_t i = 0; i < a.size(); ++i) {
        const double difference = std::abs(a[i] - b[i]);
        if (!(difference <= largest)) largest = std::isnan(difference) ? INFINITY : difference;
    }
    return largest;
}

// x' = matrix x + shift, for atoms and cell
inline System transformed(const System& system, const mlff::Mat3& matrix, double shift) {
    System result = system;
    const auto apply = [&](const double* from, double* to) {
        for (size_t a = 0; a < 3; ++a) to[a] = matrix[a][0] * from[0] + matrix[a][1] * from[1] + matrix[a][2] * from[2];
    };
    for (size_t i = 0; i < system.positions.size(); i += 3) {
        apply(&system.positions[i], &result.positions[i]);
        for (size_t a = 0; a < 3; ++a) result.positions[i + a] += shift;
    }
    for (size_t k = 0; k < 3; ++k) apply(system.cell[k].data(), result.cell[k].data());
    return result;
}

inline double largest_size(const std::vector<double>& a) {
    double largest = 0;
    for (double value : a) largest = std::max(largest, std::abs(value));
    return largest;
}

}  // namespace mace_test
