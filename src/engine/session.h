// SPDX-License-Identifier: MIT
// Evaluates a model: owns the threads, the neighbour list and the scratch memory. One thread at a time.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "potential/model.h"

namespace mlff {

struct SessionOptions {
    std::string device = "auto";  // auto, cpu, reference (plain fp64 loops), cuda, cuda:1
    Precision precision = Precision::automatic;
    int thread_count = 0;                // 0 = all cores
    std::string head;                    // "" = the only one
    double neighbor_skin = 0;            // angstrom; 0 = the backend's choice: none on the CPU
    double neighbor_skin_on_cpu = 0;     // angstrom; where neighbor_skin is 0, for callers that move atoms by little:
                                         // there the CPU searches anew in every call unless it has a skin
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

    // One system with positions and results in memory of the session's GPU; see Evaluator::evaluate_on_device.
    void evaluate_on_device(const SystemView& system, const Results& results, void* stream);

    // A part of a system; see Evaluator::evaluate_domain. A failure here leaves other domains waiting: end them too.
    void evaluate_domain(const Domain& domain, const Outputs& outputs);
    // Whether domains can share rows: see Evaluator.
    GpuAddress gpu_address();
    void reach_gpu(const GpuAddress& address);

    // For dynamics that stay on the session's GPU, together with its threads; nullptr on the CPU.
    DeviceStepper* device_stepper();
    ThreadTeam& team();

    // What a system would take on a GPU before it is there; see Evaluator.
    double forecast_radius() const;  // angstrom
    MemoryForecast forecast_memory(int64_t atom_count, int64_t edge_count);

    const Model& model() const;
    const std::string& device() const;         // "cpu"
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
