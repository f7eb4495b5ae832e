// SPDX-License-Identifier: MIT
#include "tools/bench/calibrate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <memory>

#include "core/error.h"
#include "dynamics/molecular_dynamics.h"
#include "dynamics/session_forces.h"
#include "gpu/runtime/host_facts.h"
#include "tools/bench/memory_monitor.h"
#include "tools/plan/plan.h"
#include "tools/verify/evaluation.h"

namespace mlff::bench {
namespace {

constexpr double kThinner = 1.25;                       // factor of lengths: half the density
constexpr size_t kLeastSystems = 4;                     // always measured, however long they take
constexpr int64_t kLeastAtomsOfMemory = 100;            // with fewer, session setup and page effects dominate
constexpr double kLongestCall = 1, kLongestStep = 0.4;  // seconds: longer calls are not timed
constexpr double kLongestOnce = 3;                      // beyond this, memory is not measured either
constexpr double kTimeStep = 0.5;                       // fs
constexpr double kHottest = 3000;                       // kelvin, after steps that began with 300
constexpr double kMemoryBound = 15, kTimeBound = 30;    // per cent: the allowed error of a prediction

struct SizedSystem {
    Frame frame;
    plan::Load load;
};

SizedSystem sized(const Bench& bench, Frame frame, double factor) {
    SizedSystem system;
    system.frame = factor == 1 ? std::move(frame) : make_thinner(bench.material, frame, factor);
    ThreadTeam team(bench.options.thread_count);
    system.load = {system.frame.atom_count(),
                   plan::count_edges(system.frame.view(), bench.model->summary().cutoff, team)};
    return system;
}

std::string text_of(const plan::Load& load) { return concat(load.atoms, " atoms, ", load.edges, " edges"); }

// `call`: expected seconds per call.
SamplingRule calibration_rule(const Bench& bench, double call) {
    return call > kLongestCall ? SamplingRule{1, 0, 3, 3, 0}
           : bench.is_quick    ? SamplingRule{1, 0, 5, 20, 0.1}
                               : SamplingRule{2, 0.1, 7, 200, 0.8};
}

// The peak memory of new sessions and their first calls. Calls look(session, bytes in use before it was created).
template <class Look>
std::vector<double> sample_memory(const Bench& bench, const Frame& frame, int sessions, const Look& look) {
    std::vector<double> samples;
    for (int i = 0; i < sessions; ++i) {
        MemoryMonitor monitor(bench.device_memory());
        monitor.begin("session");
        Session session(bench.model, bench.options);
        look(session, monitor.phases().front().before);
        monitor.begin("first call");
        verify::evaluate(session, frame);
        monitor.end();
        samples.push_back(static_cast<double>(monitor.most_bytes()));
    }
    return samples;
}

std::vector<double> sample_calls(Bench& bench, const Frame& frame, double expected) {
    Session session(bench.model, bench.options);
    return sample_times(bench.clock, calibration_rule(bench, expected), [&] { verify::evaluate(session, frame); });
}

// A step of dynamics as in `mlff md`: the median of some blocks of steps. `call`: seconds per evaluation.
double measure_steps(Bench& bench, const Frame& frame, double call, double time_step) {
    constexpr int kBlocks = 5;
    const auto block =
        static_cast<int64_t>(std::clamp((bench.is_quick ? 0.02 : 0.15) / std::max(call, 1e-7), 1.0, 500.0));
    SessionOptions session_options = bench.options;
    session_options.is_trajectory = true;
    Session session(bench.model, session_options);
    SessionForces forces(session);
    Particles particles(frame.view());
    set_temperature(particles, 300, 1);
    DynamicsOptions options;
    options.time_step = time_step;
    options.wants_virial = frame.cell.has_value() && bench.model->gives_virial(frame.view());
    MolecularDynamics dynamics(forces, std::move(particles), options);
    if (DeviceStepper* stepper = session.device_stepper()) dynamics.move_to_device(*stepper, session.team());
    dynamics.advance(2);
    std::vector<double> times;
    for (int i = 0; i < kBlocks; ++i) {
        double elapsed = 0;
        {
            const Stopwatch watch(bench.clock, elapsed);
            dynamics.advance(block);
        }
        times.push_back(elapsed / static_cast<double>(block));
    }
    if (time_step == kTimeStep && !(dynamics.temperature() < kHottest))
        fail(Status::system, "the atoms fly apart, so the number of edges changes");
    return summarize(times).median;
}
// A model that was not trained for this material may make it unstable: then use steps so short that nothing moves far.
double measure_step(Bench& bench, const Frame& frame, double call) {
    try {
        return measure_steps(bench, frame, call, kTimeStep);
    } catch (const Error& error) {
        if (error.status() != Status::system) throw;
    }
    return measure_steps(bench, frame, call, 1e-4);
}

void check_calibratable(const Bench& bench) {
    if (!(bench.model->summary().cutoff > 0))
        fail(Status::unsupported, bench.model_name,
             ": cannot be calibrated: it builds its neighbour list itself, in a separate process");
}

// Adds the prediction to the measurement, and a verdict.
void judge(Row& row, const plan::Load& load, double predicted, double bound) {
    row.figures = {{"predicted " + row.unit, predicted},
                   {"edges/atom", static_cast<double>(load.edges) / static_cast<double>(load.atoms)}};
    row.checks.push_back(validate::at_most("prediction off by", 100 * std::abs(predicted / row.summary.median - 1),
                                           bound, "%", "predicted " + quantity_text(predicted, row.unit)));
}

}  // namespace

plan::Calibration calibrate(Bench& bench) {
    check_calibratable(bench);
    plan::Calibration calibration;
    calibration.material = bench.material.name;
    calibration.is_quick = bench.is_quick;
    verify::evaluate(
        *std::make_unique<Session>(bench.model, bench.options),
        make_system(bench.material, kLargestCluster));  // one-time work of the process does not count for sessions
    bench.process_memory.begin_peak();
    calibration.process_bytes = static_cast<double>(bench.process_memory.used_bytes());
    const bool has_gpu = bench.gpu_memory != nullptr;
    std::vector<int64_t> sizes = bench.is_quick ? std::vector<int64_t>{12, 48, 192, 384}
                                                : std::vector<int64_t>{12, 48, 150, 192, 768, 1536, 3456, 6912};
    if (has_gpu && !bench.is_quick) sizes.insert(sizes.end(), {12288, 49152, 98304});
    const double available =
        has_gpu ? std::numeric_limits<double>::infinity() : static_cast<double>(available_memory());
    plan::Load last;
    double last_call = 0, last_bytes = 0;
    for (const int64_t size : sizes)
        for (const double factor : {1.0, kThinner}) {
            const SizedSystem system = sized(bench, make_system(bench.material, size), factor);
            const double growth =
                last.atoms > 0 ? static_cast<double>(system.load.atoms) / static_cast<double>(last.atoms) : 1;
            const double expected_call = growth * last_call;
            const bool is_needed = calibration.memory_samples.size() < kLeastSystems;
            if (!is_needed && (expected_call > kLongestOnce || (available > 0 && growth * last_bytes > available / 2)))
                break;
            bench.announce("calibration, " + text_of(system.load));
            if (size >= kLeastAtomsOfMemory) {
                last_bytes =
                    summarize(sample_memory(bench, system.frame, bench.is_quick || expected_call > kLongestCall ? 1 : 3,
                                            [](Session&, int64_t) {}))
                        .median;
                calibration.memory_samples.push_back({system.load, last_bytes});
            }
            last = system.load;
            last_call = expected_call;
            if (!is_needed && expected_call > kLongestCall) continue;
            last_call = summarize(sample_calls(bench, system.frame, expected_call)).median;
            calibration.evaluation_samples.push_back({system.load, last_call});
            if (last_call <= kLongestStep || calibration.step_samples.size() < kLeastSystems)
                calibration.step_samples.push_back({system.load, measure_step(bench, system.frame, last_call)});
        }
    plan::fit(calibration);
    return calibration;
}

std::string calibration_table(const plan::Calibration& calibration) {
    std::string text;
    char line[200];
    std::snprintf(line, sizeof line, "%10s %12s %12s %12s %14s %12s %12s %12s\n", "atoms", "edges", "memory", "fitted",
                  "an evaluation", "fitted", "a step", "fitted");
    text += line;
    const auto is_before = [](const plan::Load& a, const plan::Load& b) {
        return std::pair(a.atoms, a.edges) < std::pair(b.atoms, b.edges);
    };
    std::map<plan::Load, std::array<std::string, 3>, decltype(is_before)> rows(
        is_before);  // not everything is measured for every system
    for (const plan::Sample& sample : calibration.memory_samples)
        rows[sample.load][0] = quantity_text(sample.value, "B");
    for (const plan::Sample& sample : calibration.evaluation_samples)
        rows[sample.load][1] = quantity_text(sample.value, "s");
    for (const plan::Sample& sample : calibration.step_samples) rows[sample.load][2] = quantity_text(sample.value, "s");
    for (const auto& [load, cells] : rows) {
        std::snprintf(line, sizeof line, "%10lld %12lld %12s %12s %14s %12s %12s %12s\n",
                      static_cast<long long>(load.atoms), static_cast<long long>(load.edges), cells[0].c_str(),
                      quantity_text(calibration.memory.of(load), "B").c_str(), cells[1].c_str(),
                      quantity_text(calibration.evaluation.of(load), "s").c_str(), cells[2].c_str(),
                      quantity_text(calibration.step.of(load), "s").c_str());
        text += line;
    }
    const auto cost_text = [](const plan::FlooredCost& cost, const std::string& unit) {
        return concat(quantity_text(cost.linear.fixed, unit), " + ", quantity_text(cost.linear.per_atom, unit),
                      "/atom + ", quantity_text(cost.linear.per_edge, unit), "/edge",
                      cost.floor > 0 ? ", at least " + quantity_text(cost.floor, unit) : "");
    };
    const auto percent = [](double error) { return concat(std::round(1000 * error) / 10, " %"); };
    return text + concat("memory      ", cost_text(calibration.memory, "B"), "; off by at most ",
                         percent(calibration.memory_error), "; the process itself ",
                         quantity_text(calibration.process_bytes, "B"), "\nevaluation  ",
                         cost_text(calibration.evaluation, "s"), "; off by at most ",
                         percent(calibration.evaluation_error), "\nstep        ", cost_text(calibration.step, "s"),
                         "; off by at most ", percent(calibration.step_error), "\n");
}

void run_plan(Bench& bench, Report& report) {
    if (!bench.calibration) {
        report.left_out.push_back(concat("predictions: ", bench.why_no_calibration));
        return;
    }
    const plan::Calibration& calibration = *bench.calibration;
    const bool has_gpu = bench.gpu_memory != nullptr;
    const std::vector<int64_t> sizes = has_gpu          ? std::vector<int64_t>{2000, 20'000, 60'000}
                                       : bench.is_quick ? std::vector<int64_t>{300}
                                                        : std::vector<int64_t>{300, 2000, 5000};
    double factor = 1.12;
    for (const int64_t size : sizes) {
        factor =
            factor == 1.12 ? 1.06 : 1.12;  // densities, and so numbers of edges, that the calibration does not contain
        const SizedSystem system = sized(bench, make_box(bench.material, size), factor);
        const plan::TimePlan time = plan::plan_time(calibration, system.load);
        if (size != sizes.front() && time.evaluation > 5 * kLongestCall) {
            report.left_out.push_back(concat("predictions for ", system.load.atoms, " atoms: a call would take ",
                                             quantity_text(time.evaluation, "s")));
            continue;
        }
        const std::string name = concat(system.load.atoms, " atoms");
        bench.announce("predictions, " + name);
        const auto add = [&](const char* what, const char* unit, std::vector<double> samples, double predicted,
                             double bound) {
            Row row("plan", concat(what, ", ", name), system.load.atoms, unit, std::move(samples));
            judge(row, system.load, predicted, bound);
            report.rows.push_back(std::move(row));
        };
        double bytes = calibration.memory.of(system.load);
        std::vector<double> memory =
            sample_memory(bench, system.frame, bench.is_quick ? 1 : 3, [&](Session& session, int64_t used_before) {
                if (has_gpu) bytes = plan::plan_gpu_memory(session, system.frame.view(), used_before, 0).usual_bytes;
            });
        add("memory", "B", std::move(memory), bytes, kMemoryBound);
        add("evaluation", "s", sample_calls(bench, system.frame, time.evaluation), time.evaluation, kTimeBound);
        if (time.evaluation > 3 * kLongestStep) continue;
        add("a step", "s", {measure_step(bench, system.frame, time.evaluation)}, time.step, kTimeBound);
    }
}

}  // namespace mlff::bench
