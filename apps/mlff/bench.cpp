// SPDX-License-Identifier: MIT
// mlff bench: how fast is a model here, and has that changed?
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <memory>
#include <optional>

#include <nlohmann/json.hpp>

#include "bench_compare.h"
#include "command.h"
#include "core/error.h"
#include "core/mapped_file.h"
#include "formats/json_text.h"
#include "gpu/runtime/gpu.h"
#include "profile.h"
#include "run_facts.h"
#include "tools/bench/baseline.h"
#include "tools/bench/calibrate.h"
#include "tools/bench/report_html.h"
#include "tools/bench/suites.h"
#include "tools/plan/plan.h"

namespace mlff::app {
namespace {

struct BenchOptions {
    ModelOptions model;
    std::vector<std::string> suites = {"all"};
    std::vector<int64_t> sizes;
    int64_t step_count = 0;
    bool is_quick = false, calibrates = false;
    std::string json, report, baseline, calibration;
    std::vector<std::string> compared;
    ProfileOptions profile;
};

// Before minutes of work: is everything that was asked for possible?
std::vector<bench::Suite> chosen_suites(const BenchOptions& options) {
    std::vector<bench::Suite> chosen;
    for (const std::string& name : options.suites) {
        const size_t before = chosen.size();
        for (const bench::Suite& suite : bench::all_suites())
            if (name == "all" || name == suite.name) chosen.push_back(suite);
        if (chosen.size() == before)
            fail(Status::argument, "--suite '", name,
                 "': expected latency, throughput, md, memory, leaks, neighbors, load, plan or all");
    }
    return chosen;
}
void check_bench_options(const BenchOptions& options) {
    for (int64_t size : options.sizes)
        if (size < 1 || size > 10'000'000) fail(Status::argument, "--sizes ", size, ": expected 1 to 10000000 atoms");
    if (options.step_count < 0 || (options.step_count > 0 && options.step_count < 20))
        fail(Status::argument, "--steps ", options.step_count, ": expected at least 20");
    if (options.calibrates &&
        (!options.baseline.empty() || !options.report.empty() || options.suites != BenchOptions{}.suites))
        fail(Status::argument, "--calibrate runs no suites and excludes --suite, --baseline and --report");
    if (!options.profile.is_wanted && !options.profile.trace.empty()) fail(Status::argument, "--trace needs --profile");
    if (options.profile.is_wanted &&
        (!options.report.empty() || !options.baseline.empty() || options.suites != BenchOptions{}.suites))
        fail(Status::argument, "--profile runs no suites and excludes --suite, --report and --baseline");
    check_outputs("", "", options.profile.trace);
    check_outputs(options.report, "report.html", options.json);
}

void print_lines(const char* title, const std::vector<std::string>& lines) {
    for (const std::string& line : lines) std::cout << title << line << "\n";
}

// --calibrate: the cost model of this model here, for `mlff plan` and the suite of that name.
int run_calibration(const BenchOptions& options, bench::Bench& bench, const bench::Report& report,
                    const plan::CalibrationKey& key, bool prints_text) {
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
    if (!options.compared.empty()) {
        check_bench_options(options);
        return run_bench_compare(
            {options.model, options.compared, options.sizes, options.is_quick, options.json, options.report});
    }
    const std::vector<bench::Suite> suites = chosen_suites(options);
    check_bench_options(options);
    std::optional<nlohmann::json> baseline;
    if (!options.baseline.empty()) {
        const auto file = MappedFile::open(options.baseline);
        baseline = parse_untrusted_json(file->text(), options.baseline);
    }
    const auto model = load_model(options.model.model);
    bench::Report report;
    bench::SteadyClock clock;
    bench::ProcessMemory process_memory;
    std::optional<bench::GpuMemory> gpu_memory;
    bench::Bench bench{.model = model,
                       .model_name = options.model.model,
                       .options = options.model.session_options(),
                       .material = bench::choose_material(model->summary().elements),
                       .is_quick = options.is_quick,
                       .sizes = options.sizes,
                       .step_count = options.step_count,
                       .clock = clock,
                       .process_memory = process_memory};
    plan::CalibrationKey key;
    std::string device_reason;
    {
        const Session session(model, bench.options);
        device_reason = session.device_reason();
        key = plan::key_of(session, plan_model_id(options.model.model), options.model.session.exact_radial);
        report.device = session.device_name();
        report.precision = precision_name(session.precision());
        report.head = session.head();
        report.threads = bench.is_python() ? 0 : session.thread_count();
    }
    bench.options.device = report.device;
    if (names_gpu(report.device) && !gpu_inventory().gpus.empty())
        bench.gpu_memory = &gpu_memory.emplace(gpu_ordinal(*parse_device(report.device)));
    add_run_facts(report, report.device);
    report.model = options.model.model;
    report.sha256 = sha256_of_model(options.model.model);
    report.material = bench.material.name;
    report.is_quick = options.is_quick;
    // A baseline of something else is refused before anything is measured.
    if (baseline) bench::check_comparable(report_json(report), *baseline, options.baseline);

    if (options.profile.is_wanted) return run_profile(bench, report, {true, options.profile.trace, options.json});
    const bool prints_text = options.json != "-", is_terminal = isatty(STDERR_FILENO) == 1;
    if (is_terminal) bench.announce = [](const std::string& what) { std::cerr << "\r\033[K" << what << std::flush; };
    if (prints_text) {
        std::cout << report.model << ", " << report.device << " (" << device_reason << "), " << report.precision << ", "
                  << bench::threads_text(report.threads) << ", " << report.material << "\n";
        if (!options.calibrates)
            std::printf("%-11s %-26s %10s %10s %10s %10s %10s\n", "suite", "", "median", "95% low", "95% high", "P95",
                        "P99");
        std::fflush(stdout);
    }
    if (options.calibrates) return run_calibration(options, bench, report, key, prints_text);
    if (options.calibration.empty())
        bench.calibration = plan::CalibrationStore().find(key, &bench.why_no_calibration);
    else
        bench.calibration = plan::read_calibration(options.calibration, key);
    bench::run_suites(bench, suites, report, [&](size_t first) {
        if (is_terminal) std::cerr << "\r\033[K" << std::flush;
        for (size_t i = first; prints_text && i < report.rows.size(); ++i)
            std::cout << row_text(report.rows[i]) << std::flush;
    });
    nlohmann::json json = report_json(report);
    bool is_good = report.is_passed();
    if (prints_text) {
        print_lines("not measured: ", report.left_out);
        print_lines("FAIL: ", report.failures);
    }
    std::optional<bench::Comparison> compared;
    if (baseline) {
        const bench::Comparison& found =
            compared.emplace(bench::compare_with_baseline(json, *baseline, options.baseline));
        is_good = is_good && found.regressions.empty();
        json["baseline"] = {{"file", options.baseline},           {"compared", found.compared},
                            {"regressions", found.regressions},   {"undecided", found.undecided},
                            {"improvements", found.improvements}, {"notes", found.notes}};
        if (prints_text) {
            print_lines("note: ", found.notes);
            print_lines("better: ", found.improvements);
            print_lines("undecided: ", found.undecided);
            print_lines("REGRESSION: ", found.regressions);
            std::cout << found.compared << " rows compared with " << options.baseline << ", "
                      << bench::counts_text(found) << "\n";
        }
    }
    json["passed"] = is_good;
    const std::string text = json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    if (!options.json.empty()) write_text(options.json, text);
    if (!options.report.empty()) {
        write_text(options.report + "/report.json", text);
        write_text(options.report + "/report.md", report_markdown(report));
        write_text(options.report + "/report.html", report_html(report, compared));
    }
    if (prints_text && !report.is_passed()) std::cout << "FAIL: not all checks passed\n";
    return is_good ? kGood : kCheckFailed;
}

}  // namespace

void add_bench(CLI::App& app, Work& work) {
    CLI::App* command = app.add_subcommand("bench", "measure the speed of a model on this machine");
    auto options = std::make_shared<BenchOptions>();
    options->model.add_to(*command);
    auto* suite = command
                      ->add_option("--suite", options->suites,
                                   "suites to run: latency, throughput, md, memory, leaks, neighbors, load, plan, all")
                      ->delimiter(',')
                      ->capture_default_str()
                      ->option_text("NAME,...");
    command->add_option("--sizes", options->sizes, "numbers of atoms for latency, --compare and --profile")
        ->delimiter(',')
        ->option_text("N,N,...");
    auto* steps = command
                      ->add_option("--steps", options->step_count,
                                   "number of steps of dynamics; 0 = 2000, 400 for a Python model, 60 with --quick")
                      ->capture_default_str()
                      ->option_text("N");
    command->add_flag("--quick", options->is_quick, "few samples of small systems, to see whether everything runs");
    add_json_option(*command, options->json);
    add_report_option(*command, options->report);
    auto* baseline =
        command
            ->add_option(
                "--baseline", options->baseline,
                "compare with the --json of an earlier run; exit code 1 if something is slower or less accurate")
            ->option_text("RESULTS");

    command
        ->add_option("--calibration", options->calibration,
                     "file with the cost model of 'mlff bench --calibrate' (default: in the user's data folder)")
        ->option_text("CALIBRATION");

    const std::string instead = "Instead of the suites";
    auto* calibrate =
        command->add_flag("--calibrate", options->calibrates, "measure the cost model that 'mlff plan' predicts with")
            ->group(instead);
    auto* profile = command
                        ->add_flag("--profile", options->profile.is_wanted,
                                   "show time, FLOP/s and bytes/s of each stage of an evaluation of --sizes atoms "
                                   "(default: 500)")
                        ->excludes(calibrate)
                        ->group(instead);
    command
        ->add_option("--trace", options->profile.trace,
                     "with --profile: write a trace for chrome://tracing or Perfetto to OUT")
        ->option_text("OUT")
        ->group(instead);
    command
        ->add_option("--compare", options->compared,
                     "measure the latency of several implementations in turns; give it once for each: "
                     "MODEL[,device=D][,precision=P][,threads=N][,head=H]; the other options set the defaults; "
                     "',graph=off', ',neighbors=brute' and ',fused=off' each switch an optimisation off")
        ->excludes(suite, steps, baseline, calibrate, profile)
        ->option_text("SPEC")
        ->group(instead);
    command->footer(
        R"(Prints medians with 95% confidence intervals. The exit code is 1 if a check fails or a result is
worse than in the baseline; results that are too noisy to tell are undecided and do not fail.

Examples:
  # All suites, with a page of plots
  mlff bench --model X.model --report report
  # Compare with an earlier run
  mlff bench --model X.model --json before.json
  mlff bench --model X.model --baseline before.json
  # Two precisions side by side
  mlff bench --model X.model --compare precision=mixed --compare precision=fp64
  # What CUDA graphs and fused messages bring on this GPU
  mlff bench --device cuda --compare graph=on --compare graph=off --compare fused=off)");
    command->callback([options, &work] { work = [options] { return run_bench(*options); }; });
}

}  // namespace mlff::app
