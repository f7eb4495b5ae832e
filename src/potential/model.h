// SPDX-License-Identifier: MIT
// A model: read-only after loading, shared by any number of threads and sessions.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "formats/json_value.h"
#include "formats/tensor.h"
#include "potential/backend_options.h"
#include "potential/evaluator.h"

namespace mlff {

struct TrustMeter;
namespace gpu {
class StepModel;
}
// Makes the StepModel of a model (gpu/engine/step_model.h). Call it while the model's GPU is the current device.
// `stream`, a cudaStream_t, is the stream of all steps.
using MakeStepModel = std::function<std::shared_ptr<gpu::StepModel>(void* stream)>;

// What sessions and callers need to know about any model.
struct ModelSummary {
    std::string class_name;
    double cutoff = 0;        // angstrom; 0: the model finds its neighbours itself
    double range = 0;         // angstrom: the longest distance over which atoms matter to each other; 0: the cutoff
    bool knows_reach = true;  // false: a member of a committee does not say how far it reaches
    int layer_count = 0;
    std::vector<int> elements;       // ascending
    std::vector<std::string> heads;  // at least one
    int fixed_head = -1;             // >= 0: only this head of the file can be used
    DType dtype = DType::float64;
    int64_t parameter_count = 0;
    int descriptor_count = 0;         // numbers per atom in Outputs::descriptors; 0: the model has none
    bool takes_charge = false;        // total charge; true also where nobody knows
    bool takes_spin = false;          // the same for the spin multiplicity
    bool is_mirror_symmetric = true;  // whether mirror images have the same energy
    int member_count = 0;             // of a committee, whose results have a spread; 0: the model is none
    std::string why_not_runnable;     // "" if it can be run

    double reach() const { return !knows_reach ? 0 : cutoff > range ? cutoff : range; }
};

struct UsableGpus {
    size_t count = 0;
    std::string why_none;  // "" if there is one
};

class Model {
public:
    virtual ~Model() = default;
    virtual const ModelSummary& summary() const = 0;
    // The object that `mlff model info --json -` prints.
    virtual JsonValue description() const = 0;
    // Resolves `automatic`. Throws Error{unsupported} if the model lacks the wanted precision on that device.
    virtual Precision choose_precision(const Device& device, Precision wanted) const = 0;
    virtual bool runs_on_gpu() const = 0;
    // Of a model that runs on GPUs: whether it has a make_step_model().
    virtual bool shares_gpu_steps() const { return true; }
    // For native models these are the GPUs that this library can use.
    virtual UsableGpus usable_gpus() const;
    // Outputs that a model may lack. Asking for one that it lacks is an Error{unsupported}.
    virtual bool gives_atom_energies() const { return true; }
    virtual bool gives_virial(const SystemView& system) const {
        (void)system;
        return true;
    }
    // The same model for fewer elements if that is cheaper, otherwise nullptr.
    virtual std::shared_ptr<const Model> restricted_to(const std::vector<int>& elements) const {
        (void)elements;
        return nullptr;
    }
    // Throws Error{unsupported} if the model cannot be run.
    virtual std::unique_ptr<Evaluator> make_evaluator(const BackendOptions& options) const = 0;
    // For sums and committees on the GPU, whose parts share one step. Throws Error{unsupported} if the model has none.
    virtual MakeStepModel make_step_model(const BackendOptions& options) const;

    // What says how far its results may be trusted; nullptr: nobody fitted one. Set before the model is shared.
    const std::shared_ptr<const TrustMeter>& trust_meter() const { return trust_meter_; }
    void set_trust_meter(std::shared_ptr<const TrustMeter> meter) { trust_meter_ = std::move(meter); }

    // Logs a warning if the system has a charge or a spin that the model does not take: once for each in the life of
    // the model, however many systems, sessions and threads there are.
    void warn_of_unused(const SystemView& system) const;

private:
    std::shared_ptr<const TrustMeter> trust_meter_;
    mutable std::atomic<bool> has_warned_of_charge_{false}, has_warned_of_spin_{false};
};

// Throws Error{unsupported} if exact radial functions are asked for on a GPU, which only has tables.
void require_tables_on_gpu(const BackendOptions& options);

// For Model::description().
inline JsonValue units_json() { return JsonValue::Object{{"energy", "eV"}, {"length", "angstrom"}}; }

}  // namespace mlff
