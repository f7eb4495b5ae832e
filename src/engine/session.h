// SPDX-License-Identifier: MIT
// Evaluates a model: owns the threads, the neighbour list and the scratch memory. One thread at a time.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "engine/load_model.h"
#include "potential/device_stepper.h"
#include "potential/domain_evaluation.h"
#include "potential/memory_forecasts.h"
#include "potential/neighbor_skin.h"

namespace mlff {

struct SessionOptions {
    std::string device = "auto";  // auto, cpu, reference (plain fp64 loops), cuda, cuda:1
    Precision precision = Precision::automatic;
    int thread_count = 0;  // 0 = all cores
    std::string head;      // "" = the only one
    NeighborSkin neighbor_skin;
    bool is_trajectory = false;          // atoms move little from call to call, for the automatic skin
    bool exact_radial = false;           // radial functions evaluated for every edge instead of interpolated in tables
    int64_t gpu_memory_limit_bytes = 0;  // for atoms and edges, beside the model; 0 = what is free
};

// Results of one system: Outputs and the stress that follows from the virial.
struct Results {
    Outputs outputs;
    double* stress = nullptr;  // [6] xx yy zz yz xz xy, eV/angstrom^3; refused where nothing is periodic
};

class Session {
public:
    Session(std::shared_ptr<const Model> model, const SessionOptions& options);  // throws Error
    ~Session();

    // A bad system is named and found before any is computed, but for atoms at the same place. A system that fails
    // while it is computed has no results, those before it have theirs. Throws Error{system} where a result is not
    // finite, which names it; the numbers are there then.
    void evaluate(std::span<const SystemView> systems, std::span<const Results> results);
    // The same for callers that look for numbers that are not finite themselves.
    void evaluate_unchecked(std::span<const SystemView> systems, std::span<const Results> results);

    // One system with positions and results in memory of the session's GPU; see DeviceEvaluation.
    void evaluate_on_device(const SystemView& system, const Results& results, void* stream);

    // A part of a system; see DomainEvaluation. A failure here leaves other domains waiting: end them too.
    void evaluate_domain(const Domain& domain, const Outputs& outputs);
    // Whether domains can share features on GPUs; see HaloSharing.
    HaloSharing& halo_sharing();  // throws Error{unsupported} where they cannot

    // For dynamics that stay on the session's GPU, together with its threads; nullptr on the CPU.
    DeviceStepper* device_stepper();
    ThreadTeam& team();

    // What a system would take on a GPU before it is there; nullptr where nobody knows.
    MemoryForecasts* memory_forecasts();

    const Model& model() const;
    const Device& device() const;
    const std::string& device_name() const;    // "cpu", "cuda:0"
    const std::string& device_reason() const;  // why
    Precision precision() const;               // never automatic
    const std::string& head() const;
    int thread_count() const;
    int64_t evaluation_count() const;
    int64_t neighbor_build_count() const;

private:
    void evaluate(std::span<const SystemView> systems, std::span<const Results> results, bool checks_results);

    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace mlff
