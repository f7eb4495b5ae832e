// SPDX-License-Identifier: MIT
// Evaluates a model. Owns the threads, the neighbour list and the scratch memory. Call it from one thread at a time.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "engine/load_model.h"
#include "potential/device_stepper.h"
#include "potential/domain_evaluation.h"
#include "potential/memory_forecasts.h"
#include "potential/neighbor_skin.h"
#include "potential/optimizations.h"

namespace mlff {

struct SessionOptions {
    std::string device = "auto";  // auto, cpu, reference (plain fp64 loops), cuda, cuda:1
    Precision precision = Precision::automatic;
    int thread_count = 0;  // 0 = all cores
    std::string head;      // "" if the model has only one
    NeighborSkin neighbor_skin = {};
    bool is_trajectory = false;          // atoms move little between calls; the automatic skin depends on it
    bool exact_radial = false;           // evaluate radial functions for every edge instead of interpolating in tables
    int64_t gpu_memory_limit_bytes = 0;  // for atoms and edges, without the model; 0 = all that is free
    Optimizations optimizations = {};
    // On a GPU, expected errors come from its own kernels, and dynamics that stays there can measure them. Otherwise
    // they are computed on the host, from the descriptors that the GPU gives.
    bool measures_trust_on_gpu = false;
};

struct Results {
    Outputs outputs;
    double* stress = nullptr;           // [6] xx yy zz yz xz xy, eV/angstrom^3; an error if no direction is periodic
    double* sigma_max_force = nullptr;  // [1], eV/angstrom: the largest of Outputs::sigma_forces; 0 without atoms

    bool has_spread() const { return outputs.has_spread() || sigma_max_force; }
    bool has_deviations() const { return outputs.has_deviations(); }
};

class Session {
public:
    Session(std::shared_ptr<const Model> model, const SessionOptions& options);  // throws Error
    ~Session();

    // Throws Error. All systems are checked before the first is computed, except for atoms at the same place. If the
    // computation of a system fails, the systems before it have their results. A result that is not finite is an
    // Error{system} that names it; the numbers have been written by then.
    void evaluate(std::span<const SystemView> systems, std::span<const Results> results);
    // The same, but results may be not finite: the caller checks them.
    void evaluate_unchecked(std::span<const SystemView> systems, std::span<const Results> results);

    // One system with positions and results in the memory of the session's GPU; see DeviceEvaluation.
    void evaluate_on_device(const SystemView& system, const Results& results, void* stream);

    // A part of a system; see DomainEvaluation. Committees give deviations instead of a spread. Expected errors take
    // one more exchange, of host memory, and are those of own atoms, as novelties are. If it fails, other domains may
    // wait for this one: end them too.
    void evaluate_domain(const Domain& domain, const Outputs& outputs);
    // For domains that read features in each other's GPU memory.
    HaloSharing& halo_sharing();  // throws Error{unsupported} if the evaluator cannot do it

    // For dynamics that stay on the session's GPU; nullptr on the CPU. It also needs the session's threads.
    DeviceStepper* device_stepper();
    ThreadTeam& team();

    // GPU memory that a system would need; nullptr if the evaluator has no forecast.
    MemoryForecasts* memory_forecasts();

    const Model& model() const;
    const Device& device() const;
    const std::string& device_name() const;    // "cpu", "cuda:0"
    const std::string& device_reason() const;  // why this device was chosen
    Precision precision() const;               // never automatic
    const std::string& head() const;
    const TrustMeter* trust_meter() const;  // nullptr: none, or it was fitted to another head
    int thread_count() const;
    // Systems of up to this many atoms in all are evaluated as one batch; 0: one after the other.
    int64_t most_batch_atoms() const;
    int64_t evaluation_count() const;
    int64_t neighbor_build_count() const;

private:
    void evaluate(std::span<const SystemView> systems, std::span<const Results> results, bool checks_results);

    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace mlff
