// SPDX-License-Identifier: MIT
#include "tools/bench/suites.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "core/error.h"
#include "core/threads.h"
#include "dynamics/molecular_dynamics.h"
#include "dynamics/session_forces.h"
#include "gpu/runtime/event_timer.h"
#include "gpu/runtime/gpu.h"
#include "gpu/runtime/host_facts.h"
#include "neighbors/neighbor_list.h"
#include "python_models/model_name.h"
#include "tools/bench/disturbance.h"
#include "tools/bench/memory_monitor.h"
#include "tools/bench/reference.h"
#include "tools/validate/statistics.h"
#include "tools/verify/evaluation.h"

namespace mlff::bench {
namespace {

constexpr int64_t kDynamicsAtoms = 150;  // at least

Check leak_check(const std::string& of, const std::vector<int64_t>& readings) {
    const MemoryGrowth growth = memory_growth(readings);
    // A trend is a leak, however small it still is.
    return validate::at_most("growth of the memory of the " + of, static_cast<double>(growth.bytes),
                             growth.is_trend ? 0 : static_cast<double>(kLeakBytes), "B",
                             growth.is_trend ? "it grows steadily" : "");
}

void add_phases(Row& row, const MemoryMonitor& monitor) {
    for (const MemoryMonitor::Phase& phase : monitor.phases())
        row.figures.emplace_back(concat("B kept by ", phase.name), static_cast<double>(phase.kept()));
}

// Free memory of the device; 0: not known.
double free_bytes(const Bench& bench) {
    if (!bench.gpu_memory) return static_cast<double>(available_memory());
    for (const Gpu& gpu : gpu_inventory().gpus)
        if (gpu.ordinal == gpu_ordinal(*parse_device(bench.options.device)))
            return static_cast<double>(gpu.memory_bytes - bench.gpu_memory->used_bytes());
    return 0;
}

// Checks that repeated work does not take more and more memory, on the host or on the GPU.
Row repeat_row(Bench& bench, const std::string& name, int64_t atoms, int calls, const std::function<void()>& call) {
    constexpr int kReadings = 20, kMostRounds = 4;
    std::vector<double> times, probes;
    std::vector<int64_t> process_bytes, gpu_bytes;
    times.reserve(kMostRounds * kReadings);
    probes.reserve(kMostRounds * kReadings);
    process_bytes.reserve(kReadings);
    gpu_bytes.reserve(kReadings);
    bench.announce("leaks, " + name);
    for (int i = 0; i < 3; ++i) call();
    // Growth while threads and the allocator settle stops; a leak does not.
    for (int round = 0; round < kMostRounds; ++round) {
        process_bytes.clear();
        gpu_bytes.clear();
        for (int i = 0; i < kReadings; ++i) {
            double elapsed = 0;
            {
                const Stopwatch watch(bench.clock, elapsed);
                for (int k = 0; k < calls; ++k) call();
            }
            times.push_back(elapsed / calls);
            probes.push_back(probe_seconds(bench.clock));
            process_bytes.push_back(bench.process_memory.used_bytes());
            if (bench.gpu_memory) gpu_bytes.push_back(bench.gpu_memory->used_bytes());
        }
        if (!memory_growth(process_bytes).is_trend && (gpu_bytes.empty() || !memory_growth(gpu_bytes).is_trend)) break;
    }
    Row row("leaks", name, atoms, "s", std::move(times));
    row.probes = std::move(probes);
    row.checks.push_back(leak_check("process", process_bytes));
    if (bench.gpu_memory) row.checks.push_back(leak_check("GPU", gpu_bytes));
    return row;
}

}  // namespace

std::string atoms_text(const Frame& frame) {
    return concat(frame.atom_count(), " atoms", frame.cell ? ", periodic" : "");
}

bool Bench::is_python() const { return python::is_python_name(model_name); }

const Measured& Bench::sample(const std::string& title, const SamplingRule& sampling_rule,
                              const std::function<void()>& call) {
    Measured& one = measured[title];
    one.probes.push_back(probe_seconds(clock));
    one.blocks.push_back(sample_times(clock, sampling_rule, call));
    one.probes.push_back(probe_seconds(clock));
    return one;
}

SamplingRule usual_rule(bool is_quick) { return is_quick ? SamplingRule{1, 0, 5, 20, 0.05} : SamplingRule{}; }

std::vector<int64_t> usual_sizes(bool is_quick) {
    return is_quick ? std::vector<int64_t>{10, 20, 50} : std::vector<int64_t>{10, 20, 50, 100, 200, 500, 1000};
}

Frame make_system(const Material& material, int64_t atoms) {
    return atoms <= kLargestCluster ? make_cluster(material, atoms) : make_box(material, atoms);
}

void run_latency(Bench& bench, Report& report) {
    Session session(bench.model, bench.options);
    Reference reference(bench.model_name, bench.model, bench.options);
    if (!reference.why_none().empty())
        report.left_out.push_back("errors of energies and forces: " + reference.why_none());
    for (int64_t size : bench.sizes.empty() ? usual_sizes(bench.is_quick) : bench.sizes) {
        const Frame frame = make_system(bench.material, size);
        bench.announce("latency, " + atoms_text(frame));
        RepeatedFrames frames({frame});
        Row row("latency", atoms_text(frame), frame.atom_count(),
                bench.sample("latency, " + atoms_text(frame), [&] { verify::evaluate(session, frames.next()); }));
        row.figures.emplace_back("us/atom", 1e6 * row.summary.median / static_cast<double>(frame.atom_count()));
        reference.compare(session, frame, atoms_text(frame), row, report.left_out);
        report.rows.push_back(std::move(row));
    }
}

void run_throughput(Bench& bench, Report& report) {
    Session session(bench.model, bench.options);
    const Frame frame = make_cluster(bench.material, 20);
    std::vector<size_t> counts = bench.is_quick ? std::vector<size_t>{1, 8} : std::vector<size_t>{1, 4, 16, 64, 256};
    if (bench.is_python() && !bench.is_quick) {
        counts.resize(3);
        report.left_out.push_back("throughput above 16 systems: a Python model evaluates them one by one");
    }
    for (const size_t count : counts) {
        RepeatedFrames frames(std::vector<Frame>(count, frame));
        bench.announce(concat("throughput, ", count, " systems"));
        const std::string name = concat(count, " x ", atoms_text(frame));
        Row row("throughput", name, frame.atom_count() * static_cast<int64_t>(count),
                bench.sample("throughput, " + name, [&] { verify::evaluate(session, frames.next()); }));
        row.figures.emplace_back("systems/s", static_cast<double>(count) / row.summary.median);
        report.rows.push_back(std::move(row));
    }
}

void run_dynamics(Bench& bench, Report& report) {
    constexpr int kBlocks = 20;
    constexpr double kTimeStep = 0.5, kTemperature = 300;  // fs, K
    const int64_t usual_steps = bench.is_quick ? 60 : bench.is_python() ? 400 : 2000;
    const int64_t block = std::max<int64_t>(1, (bench.step_count > 0 ? bench.step_count : usual_steps) / kBlocks);
    const Frame frame = make_box(bench.material, kDynamicsAtoms);
    bench.announce("dynamics, " + atoms_text(frame));
    SessionOptions session_options = bench.options;
    session_options.is_trajectory = true;  // as `mlff md` has it
    MemoryMonitor monitor(bench.device_memory());
    monitor.begin("session");
    Session session(bench.model, session_options);
    SessionForces forces(session);
    Particles particles(frame.view());
    set_temperature(particles, kTemperature, 1);
    DynamicsOptions options;
    options.time_step = kTimeStep;
    std::vector<double> step_times, device_times, energies, probes;
    std::vector<int64_t> process_bytes, gpu_bytes;
    step_times.reserve(kBlocks);
    probes.reserve(kBlocks);
    device_times.reserve(kBlocks);
    energies.reserve(kBlocks);
    process_bytes.reserve(kBlocks);
    gpu_bytes.reserve(kBlocks);
    std::string why_broken;
    try {
        monitor.begin("first call");
        MolecularDynamics dynamics(forces, std::move(particles), options);
        std::optional<EventTimer> timer;  // by the GPU's own clock
        if (DeviceStepper* stepper = session.device_stepper()) {
            dynamics.move_to_device(*stepper, session.team());
            timer.emplace(stepper->device(), stepper->stream());
        }
        dynamics.advance(2 * block);  // warm-up
        monitor.begin("steps");
        for (int i = 0; i < kBlocks; ++i) {
            double elapsed = 0;
            {
                const Stopwatch watch(bench.clock, elapsed);
                if (timer) timer->start();
                dynamics.advance(block);
                if (timer) timer->stop();
            }
            if (timer) device_times.push_back(timer->seconds() / static_cast<double>(block));
            step_times.push_back(elapsed / static_cast<double>(block));
            probes.push_back(probe_seconds(bench.clock));
            energies.push_back(dynamics.total_energy());
            process_bytes.push_back(bench.process_memory.used_bytes());
            if (bench.gpu_memory) gpu_bytes.push_back(bench.gpu_memory->used_bytes());
        }
        monitor.end();
    } catch (const Error& error) {
        if (error.status() != Status::system) throw;
        why_broken = error.what();
    }
    if (step_times.empty()) {
        report.failures.push_back("dynamics broke while it warmed up: " + why_broken);
        return;
    }
    Row row("md", "a step of " + atoms_text(frame), frame.atom_count(), "s", step_times);
    row.probes = std::move(probes);
    const double steps_per_second = 1 / row.summary.median;
    row.figures = {{"steps/s", steps_per_second}, {"ns/day", steps_per_second * kTimeStep * 1e-6 * 86400}};
    if (!device_times.empty()) row.figures.emplace_back("s by the GPU's clock", summarize(device_times).median);
    if (energies.size() == kBlocks) {
        const validate::LineFit line = validate::fit_line(energies, kTimeStep * static_cast<double>(block));
        const double unit = 1e9 / static_cast<double>(frame.atom_count());  // eV/fs to meV/atom/ns
        row.figures.emplace_back("meV/atom/ns drift", line.slope * unit);
        row.figures.emplace_back("meV/atom/ns standard error of the drift", line.slope_error * unit);
    }
    add_phases(row, monitor);
    row.checks.push_back({"blocks of steps that were finite", static_cast<double>(step_times.size()), "", kBlocks,
                          std::numeric_limits<double>::infinity(), 0, why_broken});
    if (process_bytes.size() > 1) row.checks.push_back(leak_check("process", process_bytes));
    if (gpu_bytes.size() > 1) row.checks.push_back(leak_check("GPU", gpu_bytes));
    report.rows.push_back(std::move(row));
}

void run_memory(Bench& bench, Report& report) {
    if (names_gpu(bench.options.device) && !bench.gpu_memory) {
        report.left_out.push_back("memory: mlff was built without CUDA and cannot ask how much of the GPU's is in use");
        return;
    }
    std::vector<double> atoms, bytes;
    std::vector<int64_t> sizes = {192, 768, 1536};
    if (bench.is_python())
        report.left_out.push_back("memory above 1536 atoms: each sample starts Python anew");
    else if (!bench.is_quick)
        sizes.insert(sizes.end(), {3072, 6144});
    for (const int64_t size : sizes) {
        const Frame frame = make_box(bench.material, size);
        bench.announce("memory, " + atoms_text(frame));
        std::vector<double> samples;
        std::optional<MemoryMonitor> monitor;
        for (int i = 0; i < (bench.is_quick || bench.is_python() ? 1 : 3); ++i) {
            monitor.emplace(bench.device_memory()).begin("session");
            Session session(bench.model, bench.options);
            monitor->begin("first call");
            verify::evaluate(session, frame);
            monitor->begin("second call");
            verify::evaluate(session, frame);
            monitor->end();
            samples.push_back(static_cast<double>(monitor->most_bytes()));
        }
        Row row("memory", atoms_text(frame), frame.atom_count(), "B", std::move(samples));
        atoms.push_back(static_cast<double>(frame.atom_count()));
        bytes.push_back(row.summary.median);
        row.figures.emplace_back("B/atom", row.summary.median / atoms.back());
        add_phases(row, *monitor);
        report.rows.push_back(std::move(row));
    }
    const StraightLine line = fit_straight_line(atoms, bytes);
    auto& figures = report.rows.back().figures;
    figures.insert(figures.end(), {{"B/atom fitted", line.slope},
                                   {"B/atom standard error of the fit", line.slope_error},
                                   {"B for no atoms", line.intercept}});
    const double available = free_bytes(bench);
    if (available > 0 && line.slope > 0)
        figures.emplace_back("atoms would fit", std::floor(std::max(0.0, available - line.intercept) / line.slope));
}

void run_leaks(Bench& bench, Report& report) {
    const Frame frame = make_cluster(bench.material, 20);
    RepeatedFrames frames({frame});
    Session session(bench.model, bench.options);
    report.rows.push_back(repeat_row(bench, "repeated calls", frame.atom_count(), bench.is_quick ? 1 : 20,
                                     [&] { verify::evaluate(session, frames.next()); }));
    if (bench.is_python()) {
        report.left_out.push_back("repeated sessions: each starts Python anew");
        return;
    }
    report.rows.push_back(repeat_row(bench, "repeated sessions", frame.atom_count(), 1, [&] {
        Session another(bench.model, bench.options);
        verify::evaluate(another, frame);
    }));
}

void run_neighbors(Bench& bench, Report& report) {
    const double cutoff = bench.model->summary().cutoff;
    if (bench.is_python()) {
        report.left_out.push_back("neighbours: a Python model finds them itself");
        return;
    }
    if (!(cutoff > 0)) {
        report.left_out.push_back("neighbours: the model has no cutoff");
        return;
    }
    ThreadTeam team(bench.options.thread_count);
    for (const int64_t size :
         bench.is_quick ? std::vector<int64_t>{192, 1536} : std::vector<int64_t>{192, 1536, 12288, 98304}) {
        const Frame frame = make_box(bench.material, size);
        bench.announce("neighbours, " + atoms_text(frame));
        NeighborOptions options;
        options.cutoff = cutoff;
        NeighborList list(options);
        const SystemView system = frame.view();
        Row row("neighbors", atoms_text(frame), frame.atom_count(),
                bench.sample("neighbors, " + atoms_text(frame), [&] { list.update(system, team); }));
        row.figures = {
            {"edges/atom", static_cast<double>(list.edges().edge_count) / static_cast<double>(frame.atom_count())},
            {"atoms/s", static_cast<double>(frame.atom_count()) / row.summary.median}};
        report.rows.push_back(std::move(row));
    }
}

void run_load(Bench& bench, Report& report) {
    bench.announce("load");
    const SamplingRule rule = bench.is_python() ? SamplingRule{0, 0, bench.is_quick ? 1 : 5, 5, 0}
                                                : bench.pass_rule();  // each sample starts Python again
    MemoryMonitor monitor(bench.process_memory);
    {
        monitor.begin("loading");
        const auto again = load_model(bench.model_name);
        monitor.end();
    }
    report.rows.emplace_back("load", "the model", 0,
                             bench.sample("load, the model", rule, [&] { load_model(bench.model_name); }));
    add_phases(report.rows.back(), monitor);
    const Frame frame = make_cluster(bench.material, 20);
    report.rows.emplace_back("load", "session and first forces", frame.atom_count(),
                             bench.sample("load, session and first forces", rule, [&] {
                                 Session session(bench.model, bench.options);
                                 verify::evaluate(session, frame);
                             }));
}

const std::vector<Suite>& all_suites() {
    static const std::vector<Suite> suites = {{"latency", run_latency, true}, {"throughput", run_throughput, true},
                                              {"md", run_dynamics},           {"memory", run_memory},
                                              {"leaks", run_leaks},           {"neighbors", run_neighbors, true},
                                              {"load", run_load, true},       {"plan", run_plan}};
    return suites;
}

void run_suites(Bench& bench, const std::vector<Suite>& suites, Report& report,
                const std::function<void(size_t first)>& on_rows) {
    std::map<std::string, ProcessorTimes> spent;  // by suite, over all passes
    const auto run_suite = [&](const Suite& suite, Report& into) {
        const ProcessorTimes begin = processor_times();
        suite.run(bench, into);
        spent[suite.name] = spent[suite.name] + (processor_times() - begin);
    };
    for (int pass = 1; pass < bench.pass_count(); ++pass)
        for (const Suite& suite : suites) {
            Report unused;  // the bench keeps the samples; the last pass reports them
            if (suite.repeats) run_suite(suite, unused);
        }
    const auto cores = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
    const int threads = names_gpu(bench.options.device)  ? 1
                        : bench.options.thread_count > 0 ? bench.options.thread_count
                                                         : available_cores();
    for (const Suite& suite : suites) {
        const size_t first = report.rows.size();
        run_suite(suite, report);
        for (size_t i = first; i < report.rows.size() && !bench.is_python();
             ++i)  // its processes would count as other programs
            if (report.rows[i].unit == "s") report.rows[i].contention = contention(spent[suite.name], cores, threads);
        on_rows(first);
    }
}

}  // namespace mlff::bench
