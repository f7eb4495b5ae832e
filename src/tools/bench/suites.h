// SPDX-License-Identifier: MIT
// The measurements of `mlff bench`: one function per suite.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/session.h"
#include "tools/bench/materials.h"
#include "tools/bench/measure.h"
#include "tools/bench/results.h"
#include "tools/plan/calibration.h"

namespace mlff::bench {

SamplingRule usual_rule(bool is_quick);

// A quick run spreads the few samples of a row over this many passes through the suites. Their differences show the
// machine's noise.
inline constexpr int kQuickPasses = 5;

struct Bench {
    std::shared_ptr<const Model> model;
    std::string model_name;  // for load_model()
    SessionOptions options;
    Material material;
    bool is_quick = false;
    std::vector<int64_t> sizes;                      // atoms, for latency; empty: the default sizes
    int64_t step_count = 0;                          // steps of dynamics; 0: the default
    std::optional<plan::Calibration> calibration{};  // for this model, device, precision and machine
    std::string why_no_calibration{};
    Clock& clock;
    MemoryMeter& process_memory;
    MemoryMeter* gpu_memory = nullptr;                                             // if the device is a GPU
    std::function<void(const std::string&)> announce = [](const std::string&) {};  // called with what comes next

    std::map<std::string, Measured> measured{};  // over all passes so far, by row title

    bool is_python() const;
    SamplingRule rule() const { return usual_rule(is_quick); }
    // One pass for Python models, because each pass would start Python again.
    int pass_count() const { return is_quick && !is_python() ? kQuickPasses : 1; }
    SamplingRule pass_rule() const { return pass_count() > 1 ? SamplingRule{1, 0, 3, 8, 0.02} : rule(); }
    // The samples of this row, with those of this pass last.
    const Measured& sample(const std::string& title, const std::function<void()>& call) {
        return sample(title, pass_rule(), call);
    }
    const Measured& sample(const std::string& title, const SamplingRule& sampling_rule,
                           const std::function<void()>& call);
    MemoryMeter& device_memory() const { return gpu_memory ? *gpu_memory : process_memory; }
};

// Sizes above kLargestCluster atoms are periodic boxes; smaller ones are clusters.
inline constexpr int64_t kLargestCluster = 200;
Frame make_system(const Material& material, int64_t atoms);
std::vector<int64_t> usual_sizes(bool is_quick);  // for latency

std::string atoms_text(const Frame& frame);  // "21 atoms", "192 atoms, periodic"

// Time of one call with energy, forces and virial, and the errors of energy and forces relative to the reference.
void run_latency(Bench& bench, Report& report);
// Many small systems in one call.
void run_throughput(Bench& bench, Report& report);
// Dynamics without a thermostat: time of a step, drift of the energy, growth of the memory.
void run_dynamics(Bench& bench, Report& report);
// Peak memory of a new session and its first calls, as a function of the number of atoms.
void run_memory(Bench& bench, Report& report);
// Checks whether repeated calls and repeated sessions take more and more memory.
void run_leaks(Bench& bench, Report& report);
// The CPU neighbour list, searched from scratch.
void run_neighbors(Bench& bench, Report& report);
// Compares memory and time with the calibration's predictions, for sizes and densities not used in the calibration.
void run_plan(Bench& bench, Report& report);
// Time from the file to a model, and from a model to the first forces.
void run_load(Bench& bench, Report& report);

struct Suite {
    const char* name;
    void (*run)(Bench& bench, Report& report);
    bool repeats = false;  // short enough for several passes
};
const std::vector<Suite>& all_suites();

// Runs all passes. After each suite of the last pass, calls `on_rows` with the index of its first row in the report.
void run_suites(Bench& bench, const std::vector<Suite>& suites, Report& report,
                const std::function<void(size_t first)>& on_rows);

}  // namespace mlff::bench
