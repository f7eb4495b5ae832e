// SPDX-License-Identifier: MIT
// What the tests of PaiNN share: random models, their files, evaluations with all results, goldens.
#pragma once

#include <doctest/doctest.h>

#include <filesystem>
#include <functional>
#include <map>
#include <random>

#include "byte_writer.h"
#include "close.h"
#include "painn/reference/evaluator.h"
#include "painn/weights/weights.h"
#include "test_mace_backends.h"

namespace painn_test {

using namespace mlff;
using mace_test::random_crystal;
using mace_test::Result;
using mace_test::System;

struct Shape {
    int hidden = 32, blocks = 2, radial = 8;
    double cutoff = 4.5;
    std::vector<int> atomic_numbers = {1, 6, 8};
    bool has_repulsion = true;
    unsigned seed = 1;
    double filter_gain = 0.15;  // more, and random blocks blow up what they are given
    double closest = 0;         // of the first element with itself, more for others; 0: none
};

inline painn::Weights random_weights(const Shape& shape) {
    std::mt19937 random(shape.seed);
    std::normal_distribution<double> normal;
    const auto numbers = [&](size_t count, double size) {
        std::vector<double> values(count);
        for (double& value : values) value = size * normal(random);
        return values;
    };
    const auto linear = [&](int in, int out, bool has_bias = true, double gain = 1) {
        painn::Linear result;
        result.in_width = in;
        result.out_width = out;
        result.weight = numbers(static_cast<size_t>(in * out), gain / std::sqrt(in));
        if (has_bias) result.bias = numbers(static_cast<size_t>(out), 0.3 * gain);
        return result;
    };
    painn::Weights weights;
    weights.hidden = shape.hidden;
    weights.radial_count = shape.radial;
    weights.cutoff = shape.cutoff;
    weights.atomic_numbers = shape.atomic_numbers;
    const size_t elements = shape.atomic_numbers.size();
    weights.atomic_energies = numbers(elements, 10);
    weights.scales = numbers(elements, 0.7);
    for (size_t i = 0; shape.has_repulsion && i < elements; ++i)
        weights.repulsion_radii.push_back(0.35 + 0.2 * static_cast<double>(i));
    for (size_t i = 0; shape.closest > 0 && i < elements * elements; ++i)
        weights.closest.push_back(shape.closest + 0.1 * static_cast<double>(i / elements + i % elements));
    weights.embedding = numbers(elements * static_cast<size_t>(shape.hidden), 1);
    const int width = shape.hidden;
    for (int b = 0; b < shape.blocks; ++b)
        weights.blocks.push_back({linear(shape.radial, 3 * width, true, shape.filter_gain), linear(width, width),
                                  linear(width, 3 * width), linear(width, 2 * width, false), linear(2 * width, width),
                                  linear(width, 3 * width)});
    weights.readout_hidden = linear(width, width / 2);
    weights.readout_output = linear(width / 2, 1);
    weights.card = JsonValue::Object{{"name", "random"}};
    return weights;
}
inline std::shared_ptr<const painn::Weights> shared_weights(const Shape& shape) {
    return std::make_shared<const painn::Weights>(random_weights(shape));
}

inline Result evaluate_reference(const std::shared_ptr<const painn::Weights>& weights, const System& system,
                                 int threads = 1) {
    painn::reference::ReferenceEvaluator evaluator(weights);
    return mace_test::evaluate(evaluator, *weights, system, threads);
}

// The file of a model, piece by piece, so that tests can break it.
struct FileParts {
    struct Entry {
        std::string dtype;
        std::vector<int64_t> shape;
        std::string bytes;
    };
    std::map<std::string, std::string> metadata;
    std::map<std::string, Entry> tensors;

    std::string bytes() const {
        nlohmann::json header = {{"__metadata__", metadata}};
        std::string data;
        for (const auto& [name, entry] : tensors) {
            header[name] = {{"dtype", entry.dtype},
                            {"shape", entry.shape},
                            {"data_offsets", {data.size(), data.size() + entry.bytes.size()}}};
            data += entry.bytes;
        }
        const std::string text = header.dump();
        return test::little_endian(text.size(), 8) + text + data;
    }
};

template <class T>
std::string raw_bytes(const std::vector<T>& values) {
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

inline FileParts file_of(const painn::Weights& weights) {
    FileParts file;
    const nlohmann::json config = {{"hidden", weights.hidden},
                                   {"blocks", weights.blocks.size()},
                                   {"radial", weights.radial_count},
                                   {"cutoff", weights.cutoff}};
    file.metadata = {
        {"format", "mlff-painn"}, {"painn_layout", "1"}, {"config", config.dump()}, {"card", weights.card.dump()}};
    const auto add = [&](const std::string& name, std::vector<int64_t> shape, const std::vector<double>& values) {
        file.tensors[name] = {"F64", std::move(shape), raw_bytes(values)};
    };
    const auto add_linear = [&](const std::string& name, const painn::Linear& linear) {
        add(name + ".weight", {linear.out_width, linear.in_width}, linear.weight);
        if (!linear.bias.empty()) add(name + ".bias", {linear.out_width}, linear.bias);
    };
    const auto elements = static_cast<int64_t>(weights.atomic_numbers.size());
    file.tensors["atomic_numbers"] = {
        "I64",
        {elements},
        raw_bytes(std::vector<int64_t>(weights.atomic_numbers.begin(), weights.atomic_numbers.end()))};
    add("atomic_energies", {elements}, weights.atomic_energies);
    add("scales", {elements}, weights.scales);
    if (!weights.repulsion_radii.empty()) add("repulsion_radii", {elements}, weights.repulsion_radii);
    if (!weights.closest.empty()) add("closest", {elements, elements}, weights.closest);
    add("embedding", {elements, weights.hidden}, weights.embedding);
    for (size_t b = 0; b < weights.blocks.size(); ++b) {
        const std::string path = "blocks." + std::to_string(b) + ".";
        const painn::Block& block = weights.blocks[b];
        add_linear(path + "filter", block.filter);
        add_linear(path + "message.hidden", block.message_hidden);
        add_linear(path + "message.output", block.message_output);
        add_linear(path + "update.mix", block.mix);
        add_linear(path + "update.hidden", block.update_hidden);
        add_linear(path + "update.output", block.update_output);
    }
    add_linear("readout.hidden", weights.readout_hidden);
    add_linear("readout.output", weights.readout_output);
    return file;
}

inline painn::Weights load_bytes(const std::string& bytes) {
    return painn::load_weights(read_safetensors(test::as_bytes(bytes), "student"), "student");
}

// visit(model file, weights, golden JSON)
template <class Visit>
void for_each_painn_golden(const Visit& visit) {
    for (const char* name : {"two_blocks_f32", "one_block_no_repulsion"}) {
        CAPTURE(name);
        std::ifstream file(std::filesystem::path(MLFF_PAINN_GOLDEN_DIR) / (std::string(name) + ".json"));
        const nlohmann::json golden = nlohmann::json::parse(file);
        const std::string path =
            (std::filesystem::path(MLFF_PAINN_GOLDEN_DIR) / golden["model_file"].get<std::string>()).string();
        const auto mapped = MappedFile::open(path);
        visit(
            path,
            std::make_shared<const painn::Weights>(painn::load_weights(read_safetensors(mapped->bytes(), path), path)),
            golden);
    }
}

// |found - expected| <= tolerance * max(1, largest expected) for all numbers; NaN fails.
inline void check_all(const std::vector<double>& found, const std::vector<double>& expected, double tolerance) {
    CHECK_ALL_CLOSE(found, expected, tolerance * std::max(1.0, mace_test::largest_size(expected)));
}

struct Tolerances {
    double energy_per_atom, forces;
};
inline void check_results(const Result& found, const Result& expected, const Tolerances& tolerances) {
    const double atoms = static_cast<double>(std::max<size_t>(1, expected.atom_energies.size()));
    CHECK_ALL_CLOSE(std::vector<double>{found.energy}, std::vector<double>{expected.energy},
                    tolerances.energy_per_atom * atoms);
    check_all(found.atom_energies, expected.atom_energies, tolerances.energy_per_atom);
    check_all(found.forces, expected.forces, tolerances.forces);
    check_all(found.virial, expected.virial,
              tolerances.forces * std::max(1.0, 0.01 * static_cast<double>(expected.edge_count)));
    check_all(found.atom_virials, expected.atom_virials, tolerances.forces);
}

}  // namespace painn_test
