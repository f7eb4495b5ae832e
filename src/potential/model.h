// SPDX-License-Identifier: MIT
// A model: read-only after loading, shared by any number of threads and sessions.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "formats/json_value.h"
#include "formats/tensor.h"
#include "potential/evaluator.h"

namespace mlff {

enum class Precision : int { automatic = 0, mixed = 1, fp64 = 2, fp32 = 3, fast = 4 };  // the values of mlff_precision
std::string_view precision_name(Precision precision);

// What sessions and callers need to know of any model.
struct ModelSummary {
    std::string class_name;
    double cutoff = 0;  // angstrom
    int layer_count = 0;
    std::vector<int> elements;       // ascending
    std::vector<std::string> heads;  // at least one
    int fixed_head = -1;             // >= 0: the file works with this head only
    DType dtype = DType::float64;
    int64_t parameter_count = 0;
    int descriptor_count = 0;      // numbers for each atom in Outputs::descriptors; 0: the model has none
    std::string why_not_runnable;  // "" if it can be run
};

struct EvaluatorChoice {
    std::string device;  // "cpu", "reference", "cuda:0"
    Precision precision = Precision::automatic;
    int head = 0;
    bool exact_radial = false;           // no tables where the backend would use them
    double neighbor_skin = 0;            // angstrom; for backends that find neighbours themselves; 0 = their choice
    int64_t gpu_memory_limit_bytes = 0;  // 0 = what is free
};

struct UsableGpus {
    size_t count = 0;
    std::string why_none;  // "" if there is one
};

class Model {
public:
    virtual ~Model() = default;
    virtual const ModelSummary& summary() const = 0;
    // All that is known, for people and programs: the object that `mlff model info --json -` prints.
    virtual JsonValue description() const = 0;
    // The precision that `automatic` stands for. Throws Error{unsupported} if `wanted` is one that the model lacks on
    // that device.
    virtual Precision choose_precision(const std::string& device, Precision wanted) const = 0;
    virtual bool runs_on_cuda() const = 0;
    // The GPUs that the model could run on: for native models those that this library can use.
    virtual UsableGpus usable_gpus() const;
    // What a model may lack; asked for all the same, it is an Error{unsupported}.
    virtual bool gives_atom_energies() const { return true; }
    virtual bool gives_virial(const SystemView& system) const {
        (void)system;
        return true;
    }
    // Throws Error{unsupported} if the model cannot be run.
    virtual std::unique_ptr<Evaluator> make_evaluator(const EvaluatorChoice& choice) const = 0;
};

// What every description says of units.
inline JsonValue units_json() { return JsonValue::Object{{"energy", "eV"}, {"length", "angstrom"}}; }

// "builtin" (the embedded student), "analytic", "self-test" (a small MACE model with seeded weights), "python:..."
// (python/model_name.h), a path, or the name of a model in the model cache. Throws Error.
std::shared_ptr<const Model> load_model(const std::string& name);

}  // namespace mlff
