// SPDX-License-Identifier: MIT
#include "tools/validate/model_runs.h"

#include <algorithm>

#include "tools/validate/temperature_check.h"

namespace mlff::validate {
namespace {

constexpr int kRelaxationSteps = 100;
constexpr double kFriction = 0.05;  // 1/fs: strong, to get many independent samples in a short run
constexpr uint64_t kVelocitySeed = 1, kBathSeed = 2;
constexpr int64_t kSnapshots = 100;  // per run

class ModelRunner {
public:
    ModelRunner(Session& session, const ModelRunOptions& options, const OnProgress& on_progress)
        : session_(session), options_(options), on_progress_(on_progress) {}

    // Each run starts from the end of the previous one. Without a bath the rigid motion is removed.
    ModelRuns run(const Particles& start) {
        Particles particles = start;
        tell("relaxation", 0);
        runs_.blow_up = relax(session_, particles, kRelaxationSteps);
        if (runs_.blow_up) return std::move(runs_);
        set_temperature(particles, 2 * options_.temperature, kVelocitySeed);  // half of it becomes potential energy
        runs_.bath = dynamics(particles, "NVT", bath_steps(), options_.time_step, true);
        if (runs_.blow_up) return std::move(runs_);
        std::erase_if(runs_.bath.snapshots, [&](const Snapshot& snapshot) {
            return static_cast<double>(snapshot.step) <= kEquilibrationPart * static_cast<double>(bath_steps());
        });
        particles = runs_.bath.last;
        remove_momentum(particles);
        if (!start.environment.is_periodic()) remove_rotation(particles);
        runs_.fine = dynamics(particles, "NVE with half the time step", fine_steps(), 0.5 * options_.time_step, false);
        if (runs_.blow_up) return std::move(runs_);
        runs_.free = dynamics(particles, "NVE", options_.step_count, options_.time_step, false);
        return std::move(runs_);
    }

private:
    int64_t bath_steps() const {
        return std::max<int64_t>(200, static_cast<int64_t>(kBathPart * static_cast<double>(options_.step_count)));
    }
    int64_t fine_steps() const { return 2 * std::max<int64_t>(100, options_.step_count / 20); }

    void tell(const std::string& phase, int64_t steps_done) const {
        const auto all = static_cast<double>(bath_steps() + fine_steps() + options_.step_count);
        if (on_progress_) on_progress_(phase, static_cast<double>(steps_done) / all);
    }

    Run dynamics(const Particles& start, const std::string& phase, int64_t steps, double time_step, bool has_bath) {
        RunOptions options;
        options.phase = phase;
        options.step_count = steps;
        options.time_step = time_step;
        if (has_bath) options.bath = LangevinBath{options_.temperature, kFriction, kBathSeed};
        options.snapshot_interval = std::max<int64_t>(1, steps / kSnapshots);
        options.highest_temperature = 10 * options_.temperature + 1000;
        options.on_step = [this, phase](int64_t step) { tell(phase, steps_before_ + step); };
        Run run = run_dynamics(session_, start, options);
        steps_before_ += steps;
        if (run.blow_up) runs_.blow_up = run.blow_up;
        return run;
    }

    Session& session_;
    const ModelRunOptions& options_;
    const OnProgress& on_progress_;
    ModelRuns runs_;
    int64_t steps_before_ = 0;
};

}  // namespace

ModelRuns run_model(Session& session, const Particles& start, const ModelRunOptions& options,
                    const OnProgress& on_progress) {
    return ModelRunner(session, options, on_progress).run(start);
}

}  // namespace mlff::validate
