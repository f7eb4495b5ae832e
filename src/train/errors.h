// SPDX-License-Identifier: MIT
// Errors of a model on a set of frames.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "train/loss.h"

namespace mlff::train {

struct ErrorSums {
    double count = 0, absolute = 0, squared = 0;
    void add(double difference);
    double mean_absolute() const { return count > 0 ? absolute / count : 0; }
    double root_mean_square() const;
};

struct EnergyAndForceErrors {
    ErrorSums energy;             // eV/atom
    ErrorSums force;              // eV/angstrom, components
    nlohmann::json json() const;  // meV/atom, meV/angstrom
};

struct ModelErrors {
    int64_t frames = 0;
    EnergyAndForceErrors all;
    std::vector<ErrorSums> force_of_element;  // [element]
    std::vector<EnergyAndForceErrors> of_kind, of_size;
    double energy_loss = 0, force_loss = 0;  // means, as in training

    nlohmann::json json(const ElementTable& elements, const std::vector<std::string>& kinds) const;
};

// `frames`: indices into the set. Uses batches of at most `limit`.
ModelErrors model_errors(const Parameters& parameters, const TrainingSet& set, const BatchMaker& maker,
                         const LossRule& rule, std::span<const int64_t> frames, const BatchSize& limit,
                         size_t kind_count, const ElementTable& elements);

std::vector<int64_t> all_frames(const TrainingSet& set);
// Up to `count` frames, evenly spread over the set.
std::vector<int64_t> some_frames(const TrainingSet& set, int64_t count);

}  // namespace mlff::train
