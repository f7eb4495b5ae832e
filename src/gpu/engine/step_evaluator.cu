// SPDX-License-Identifier: MIT
#include "gpu/engine/step_evaluator.h"

#include <optional>

#include "gpu/engine/step_batches.h"
#include "gpu/engine/step_domains.h"
#include "gpu/engine/step_dynamics.h"
#include "gpu/engine/step_run.h"
#include "gpu/runtime/cuda_check.h"
#include "gpu/runtime/cuda_stream.h"
#include "gpu/runtime/gpu.h"
#include "gpu/runtime/nvtx_range.h"
#include "potential/device_evaluation.h"

namespace mlff::gpu {
namespace {

class StepEvaluator : public Evaluator, private DeviceEvaluation, private MemoryForecasts {
public:
    StepEvaluator(const BackendOptions& options, const MakeStepModel& make_model)
        : device_(gpu_ordinal(options.device)),
          current_(device_),
          run_(options, make_model),
          batches_(run_, device_),
          domains_(run_, device_),
          dynamics_(run_, device_) {
        current_.reset();
    }
    ~StepEvaluator() override { current_.emplace(device_, std::nothrow); }  // so that members free memory on their GPU

    void evaluate(const SystemView& system, const Edges&, const Outputs& outputs, ThreadTeam& team) override {
        const CurrentDevice current(device_);
        const NvtxRange range("evaluation");
        const GpuStages::Watch watch(run_.stages(), team.profile());
        run_.leave_nothing_running([&] {
            compute(system, wanted_of({&outputs, 1}), true, team);
            run_.results().write({&system, 1}, {&outputs, 1});
        });
    }
    bool needs_edges() const override { return false; }
    int64_t neighbor_build_count() const override { return run_.neighbors().build_count(); }

    BatchEvaluation* batches() override { return &batches_; }
    DomainEvaluation* domains() override { return &domains_; }
    HaloSharing* halo_sharing() override { return &domains_; }
    DeviceEvaluation* device_pointers() override { return this; }
    DeviceStepper* device_stepper() override { return &dynamics_; }
    MemoryForecasts* memory_forecasts() override { return this; }

private:
    void evaluate_on_device(const SystemView& system, const DeviceOutputs& outputs, void* stream,
                            ThreadTeam& team) override {
        const CurrentDevice current(device_);
        require_all_on_device(system, outputs);
        run_.leave_nothing_running([&] {
            order_.follow(static_cast<cudaStream_t>(stream), run_.stream());
            Wanted wanted = wanted_of({&outputs.outputs, 1});
            wanted.virial |= outputs.stress != nullptr;
            compute(system, wanted, false, team);
            run_.results().require_finite_totals();
            run_.results().copy(system.atom_count, outputs, run_.stream());
            check(cudaStreamSynchronize(run_.stream()), "copying the results");
        });
    }

    void require_all_on_device(const SystemView& system, const DeviceOutputs& outputs) const {
        const Outputs& to = outputs.outputs;
        const auto require = [&](const double* pointer, const char* name) {
            require_on_device(pointer, device_, name);
        };
        require(to.energy, "energy");
        require(to.virial, "virial");
        require(outputs.stress, "stress");
        if (system.atom_count == 0) return;
        require(system.positions, "positions");
        require(to.forces, "forces");
        require(to.atom_energies, "atom_energies");
        require(to.atom_virials, "atom_virials");
        require(to.descriptors, "descriptors");
        require(to.expected_errors, "expected_errors");
        require(to.novelties, "novelties");
    }

    // `is_host`: positions are on the host, and results go there.
    void compute(const SystemView& system, const Wanted& wanted, bool is_host, ThreadTeam& team) {
        run_.begin({.atoms = system.atom_count, .wanted = wanted, .to_host = is_host});
        run_.set_atoms({&system, 1});
        run_.prepare(system, team);
        run_.take_positions(system, is_host);
        if (!run_.neighbors().can_reuse(system) || !run_.compute_with_candidates()) run_.compute_with_search(system);
    }

    double forecast_radius() const override {
        return run_.neighbors().options().cutoff + run_.neighbors().options().skin;
    }
    MemoryForecast forecast_memory(int64_t atom_count, int64_t edge_count) override {
        return run_.forecast_memory(atom_count, edge_count);
    }

    int device_;
    std::optional<CurrentDevice> current_;  // set while the members below are constructed and destroyed
    StreamOrder order_;
    StepRun run_;
    StepBatches batches_;
    StepDomains domains_;
    StepDynamics dynamics_;
};

}  // namespace

std::unique_ptr<Evaluator> make_step_evaluator(const BackendOptions& options, const MakeStepModel& make_model) {
    return std::make_unique<StepEvaluator>(options, make_model);
}

}  // namespace mlff::gpu
