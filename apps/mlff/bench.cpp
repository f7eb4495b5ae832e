// SPDX-License-Identifier: MIT
// mlff bench: how fast is a model here, and has that changed?
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <iostream>
#include <memory>
#include <optional>

#include <nlohmann/json.hpp>

#include "bench/baseline.h"
#include "bench/calibrate.h"
#include "bench/suites.h"
#include "command.h"
#include "core/error.h"
#include "core/mapped_file.h"
#include "core/threads.h"
#include "cpu_kernels/kernel_table.h"
#include "device/gpu.h"
#include "device/host_facts.h"
#include "formats/json_text.h"
#include "plan/plan.h"
#include "build_commit.h"

namespace mlff::app {
namespace {

struct BenchOptions {
    ModelOptions model;
    std::vector<std::string> suites = {"all"};
    std::vector<int64_t> sizes;
    int64_t step_count = 0;
    bool is_quick = false, calibrates = false;
    std::string json, report, baseline, calibration;
};

class GpuMemory : public bench::MemoryMeter {
public:
    explicit GpuMemory(int ordinal) : ordinal_(ordinal) {}
    int64_t used_bytes() override { return gpu_used_bytes(ordinal_); }

private:
    int ordinal_;
};

bench::Machine machine_of(const std::string& device) {
    utsname system{};
    uname(&system);
    bench::Machine machine;
    machine.processor = read_host_facts().processor;  // AArch64 kernels do not say it
    machine.architecture = system.machine;
    machine.instructions = kernels::choose_kernels<float>().name;
    machine.cores = available_cores();
    if (!is_gpu(device)) return machine;
    const GpuInventory& inventory = gpu_inventory();
    for (const Gpu& gpu : inventory.gpus) {
        if (gpu.ordinal != gpu_ordinal(device)) continue;
        machine.gpu = gpu.name;
        machine.gpu_memory_bytes = gpu.memory_bytes;
        machine.gpu_clock_MHz = gpu.clock_kHz / 1000;
    }
    machine.gpu_driver = cuda_version_text(inventory.driver_version);
    machine.gpu_runtime = cuda_version_text(inventory.runtime_version);
    return machine;
}

std::string time_text() {
    const std::time_t now = std::time(nullptr);
    std::tm parts{};
    gmtime_r(&now, &parts);
    char text[32];
    std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
    return text;
}

// Before minutes of work: is everything that was asked for possible?
std::vector<bench::Suite> chosen_suites(const BenchOptions& options) {
    std::vector<bench::Suite> chosen;
    for (const std::string& name : options.suites) {
        const size_t before = chosen.size();
        for (const bench::Suite& suite : bench::all_suites())
            if (name == "all" || name == suite.name) chosen.push_back(suite);
        if (chosen.size() == before) fail(Status::argument, "--suite '", name, "' is none of latency, throughput, md, memory, leaks, neighbors, load, plan, all");
    }
    return chosen;
}
void check_bench_options(const BenchOptions& options) {
    for (int64_t size : options.sizes)
        if (size < 1 || size > 10'000'000) fail(Status::argument, "--sizes ", size, ": expected 1 to 10000000 atoms");
    if (options.step_count < 0 || (options.step_count > 0 && options.step_count < 20)) fail(Status::argument, "--steps ", options.step_count, ": expected at least 20");
    if (options.calibrates && (!options.baseline.empty() || !options.report.empty() || options.suites != BenchOptions{}.suites))
        fail(Status::argument, "--calibrate runs no suites: it goes with none of --suite, --baseline and --report");
    check_outputs(options.report, "report.md", options.json);
}

void print_lines(const char* title, const std::vector<std::string>& lines) {
    for (const std::string& line : lines) std::cout << title << line << "\n";
}

// --calibrate: the cost model of this model here, for `mlff plan` and the suite of that name.
int run_calibration(const BenchOptions& options, bench::Bench& bench, const bench::Report& report, const plan::CalibrationKey& key, bool prints_text) {
    plan::Calibration calibration = bench::calibrate(bench);
    calibration.key = key;
    calibration.mlff_version = report.mlff_version;
    calibration.made = report.time;
    calibration.model_name = report.model;
    const std::string text = plan::calibration_text(calibration);
    std::string path = options.calibration;
    if (path.empty())
        path = plan::CalibrationStore().put(calibration);
    else
        write_text(path, text);
    if (!options.json.empty()) write_text(options.json, text);
    if (prints_text) std::cout << bench::calibration_table(calibration) << "written to " << path << "\n";
    return kGood;
}

int run_bench(const BenchOptions& options) {
    const std::vector<bench::Suite> suites = chosen_suites(options);
    check_bench_options(options);
    std::optional<nlohmann::json> baseline;
    if (!options.baseline.empty()) {
        const auto file = MappedFile::open(options.baseline);
        baseline = parse_untrusted_json({reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()}, options.baseline);
    }
    const auto model = load_model(options.model.model);
    bench::Report report;
    bench::SteadyClock clock;
    bench::ProcessMemory process_memory;
    std::optional<GpuMemory> gpu_memory;
    bench::Bench bench{.model = model, .model_name = options.model.model, .options = options.model.session_options(), .material = bench::choose_material(model->summary().elements),
                       .is_quick = options.is_quick, .sizes = options.sizes, .step_count = options.step_count, .clock = clock, .process_memory = process_memory};
    plan::CalibrationKey key;
    std::string device_reason;
    {
        const Session session(model, bench.options);
        device_reason = session.device_reason();
        key = plan::key_of(session, plan_model_id(options.model.model), options.model.session.exact_radial);
        report.device = session.device();
        report.precision = precision_name(session.precision());
        report.head = session.head();
        report.threads = session.thread_count();
    }
    bench.options.device = report.device;
    if (is_gpu(report.device)) bench.gpu_memory = &gpu_memory.emplace(gpu_ordinal(report.device));
    report.mlff_version = MLFF_VERSION_STRING;
    report.commit = build_commit();
    report.time = time_text();
    report.machine = machine_of(report.device);
    report.model = options.model.model;
    report.sha256 = sha256_of_model(options.model.model);
    report.material = bench.material.name;
    report.is_quick = options.is_quick;
    // A baseline of something else is refused before anything is measured.
    if (baseline) bench::check_comparable(report_json(report), *baseline, options.baseline);

    const bool prints_text = options.json != "-", is_terminal = isatty(STDERR_FILENO) == 1;
    if (is_terminal)
        bench.announce = [](const std::string& what) { std::cerr << "\r\033[K" << what << std::flush; };
    if (prints_text) {
        std::cout << report.model << ", " << report.device << " (" << device_reason << "), " << report.precision << ", " << report.threads << (report.threads == 1 ? " thread, " : " threads, ") << report.material << "\n";
        if (!options.calibrates) std::printf("%-11s %-26s %10s %10s %10s %10s %10s\n", "suite", "", "median", "95% low", "95% high", "P95", "P99");
        std::fflush(stdout);
    }
    if (options.calibrates) return run_calibration(options, bench, report, key, prints_text);
    if (options.calibration.empty())
        bench.calibration = plan::CalibrationStore().find(key, &bench.why_no_calibration);
    else
        bench.calibration = plan::read_calibration(options.calibration, key);
    for (const bench::Suite& suite : suites) {
        const size_t before = report.rows.size();
        suite.run(bench, report);
        if (is_terminal) std::cerr << "\r\033[K" << std::flush;
        for (size_t i = before; prints_text && i < report.rows.size(); ++i) std::cout << row_text(report.rows[i]) << std::flush;
    }
    nlohmann::json json = report_json(report);
    bool is_good = report.is_passed();
    if (prints_text) {
        print_lines("not measured: ", report.left_out);
        print_lines("FAIL: ", report.failures);
    }
    if (baseline) {
        const bench::Comparison found = bench::compare_with_baseline(json, *baseline, options.baseline);
        is_good = is_good && found.regressions.empty();
        json["baseline"] = {{"file", options.baseline}, {"compared", found.compared}, {"regressions", found.regressions}, {"improvements", found.improvements}, {"notes", found.notes}};
        if (prints_text) {
            print_lines("note: ", found.notes);
            print_lines("better: ", found.improvements);
            print_lines("REGRESSION: ", found.regressions);
            std::cout << found.compared << " rows compared with " << options.baseline << ", " << found.regressions.size() << (found.regressions.size() == 1 ? " regression\n" : " regressions\n");
        }
    }
    json["passed"] = is_good;
    const std::string text = json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    if (!options.json.empty()) write_text(options.json, text);
    if (!options.report.empty()) {
        write_text(options.report + "/report.json", text);
        write_text(options.report + "/report.md", report_markdown(report));
    }
    if (prints_text && !report.is_passed()) std::cout << "FAIL: not all checks passed\n";
    return is_good ? kGood : kCheckFailed;
}

}  // namespace

void add_bench(CLI::App& app, Work& work) {
    CLI::App* command = app.add_subcommand("bench", "how fast is a model here, and has that changed?");
    auto options = std::make_shared<BenchOptions>();
    options->model.add_to(*command);
    command->add_option("--suite", options->suites, "of latency, throughput, md, memory, leaks, neighbors, load, plan, all")->delimiter(',')->capture_default_str();
    command->add_option("--sizes", options->sizes, "numbers of atoms for latency")->delimiter(',');
    command->add_option("--steps", options->step_count, "of dynamics; 0 = 2000, or 60 with --quick")->capture_default_str();
    command->add_flag("--quick", options->is_quick, "few samples of small systems: does everything run?");
    command->add_flag("--calibrate", options->calibrates, "measure the cost model that 'mlff plan' predicts with, instead of suites");
    command->add_option("--calibration", options->calibration, "file of the cost model; default: one in the user's data folder");
    command->add_option("--json", options->json, "write results as JSON, with all samples, to this file; '-' = standard output");
    command->add_option("--report", options->report, "folder for report.md and report.json");
    command->add_option("--baseline", options->baseline, "JSON of an earlier run: what got slower or less accurate makes exit code 1");
    command->callback([options, &work] { work = [options] { return run_bench(*options); }; });
}

}  // namespace mlff::app
