// SPDX-License-Identifier: MIT
// mlff validate: is dynamics with this model stable and physical?
#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>
#include <optional>

#include <nlohmann/json.hpp>

#include "command.h"
#include "core/error.h"
#include "core/mapped_file.h"
#include "progress_line.h"
#include "tools/validate/recommendations.h"
#include "tools/validate/report.h"

namespace mlff::app {
namespace {

using namespace validate;

struct ValidateOptions {
    ModelOptions model;
    std::string against, thresholds, report, json;
    std::vector<std::string> systems;
    int64_t step_count = 10'000;
    std::optional<int64_t> against_step_count;  // as many as step_count
    bool is_long = false;
    double time_step = 0.5, temperature = 300;
};

Settings settings_of(const ValidateOptions& options) {
    Settings settings;
    settings.step_count = options.is_long ? 100'000 : options.step_count;
    settings.against_step_count = options.against_step_count.value_or(settings.step_count);
    settings.time_step = options.time_step;
    settings.temperature = options.temperature;
    if (settings.step_count < 100) fail(Status::argument, "--steps ", settings.step_count, ": expected at least 100");
    if (settings.against_step_count != 0 && settings.against_step_count < 100)
        fail(Status::argument, "--against-steps ", settings.against_step_count,
             ": expected at least 100, or 0 for none");
    if (!(std::isfinite(settings.time_step) && settings.time_step > 0))
        fail(Status::argument, "--dt ", settings.time_step, ": expected more than 0 fs");
    if (!(std::isfinite(settings.temperature) && settings.temperature > 0))
        fail(Status::argument, "--temperature ", settings.temperature, ": expected more than 0 K");
    if (!options.thresholds.empty()) {
        const auto file = MappedFile::open(options.thresholds);
        settings.thresholds = parse_thresholds(std::string(file->text()), options.thresholds);
    }
    return settings;
}

void print_system(const SystemReport& system) {
    std::cout << system.name << " (" << system.formula << ", " << system.atom_count << " atoms"
              << (system.is_periodic ? ", periodic" : "") << "): " << verdict_text(system) << "\n";
    if (system.blow_up) std::cout << "  FAIL  " << system.blow_up->sentence() << "\n";
    for (const Check& check : system.checks) {
        const std::string word = check.verdict() == Verdict::failed ? "FAIL" : verdict_word(check.verdict()),
                          remark = remark_text(check);
        std::cout << "  " << word << "  " << check.name << ": " << value_text(check) << ", allowed "
                  << range_text(check) << (remark.empty() ? "" : " (" + remark + ")") << "\n";
    }
    if (system.other) std::cout << "  beside " << other_sentence(system) << ":\n";
    for (const SideBySide& row : side_by_side(system))
        std::cout << "    " << row.name << ": " << row.model << ", other model " << row.other
                  << (row.verdict == Verdict::failed ? " (fails)" : "") << "\n";
    std::cout << "\n" << std::flush;
}

void print_conclusion(const Report& report) {
    std::cout << verdict_sentence(report) << "\n";
    for (const Recommendation& recommendation : recommendations(report))
        std::cout << "recommendation: " << recommendation.sentence << "\n";
}

int run_validate(const ValidateOptions& options) {
    Report report;
    report.settings = settings_of(options);
    check_outputs(options.report, "report.html", options.json);
    const auto model = load_model(options.model.model);
    const std::vector<int>& elements = model->summary().elements;
    const std::vector<TestSystem> systems =
        options.systems.empty() ? default_systems(elements) : chosen_systems(options.systems, elements);

    const SessionOptions session_options = options.model.session_options();
    Session session(model, session_options);
    SessionOptions reference_options = session_options;
    reference_options.device = "reference";
    reference_options.precision = Precision::fp64;
    Session reference(model, reference_options);
    std::optional<Session> against;
    if (!options.against.empty()) {
        SessionOptions against_options = session_options;
        against_options.precision = Precision::automatic;
        against_options.head.clear();
        against.emplace(load_model(options.against), against_options);
    }
    report.model = options.model.model;
    report.device = session.device_name();
    report.precision = precision_name(session.precision());
    report.against = options.against;

    const bool prints_text = options.json != "-";
    for (const TestSystem& system : systems) {
        {
            ProgressLine line(concat("[", report.systems.size() + 1, "/", systems.size(), "] ", system.name));
            const OnProgress show = [&](const std::string& phase, double part) { line.show(phase, part); };
            report.systems.push_back(
                validate_system({session, reference, against ? &*against : nullptr}, system, report.settings, show));
        }
        if (prints_text) print_system(report.systems.back());
    }
    if (prints_text) print_conclusion(report);
    const std::string json = report_json(report).dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    if (!options.json.empty()) write_text(options.json, json);
    if (!options.report.empty()) {
        write_text(options.report + "/report.json", json);
        write_text(options.report + "/report.md", report_markdown(report));
        write_text(options.report + "/report.html", report_html(report));
    }
    return report.is_passed() ? kGood : kCheckFailed;
}

}  // namespace

void add_validate(CLI::App& app, Work& work) {
    CLI::App* command = app.add_subcommand("validate", "check that dynamics with a model is stable and physical");
    auto options = std::make_shared<ValidateOptions>();
    std::string names;
    for (const std::string& name : builtin_system_names()) names += (names.empty() ? "" : ", ") + name;
    options->model.add_to(*command);
    auto* against = command
                        ->add_option("--against", options->against,
                                     "run another model beside this one, and compare forces, energies and structure")
                        ->option_text("MODEL");
    command
        ->add_option("--against-steps", options->against_step_count,
                     "--steps of the other model; 0 = it only evaluates snapshots (default: as many as this one)")
        ->needs(against)
        ->option_text("N");
    command->add_option("--systems", options->systems, "extended XYZ files, or built-in systems: " + names)
        ->delimiter(',')
        ->option_text("NAME,...");
    auto* steps = command
                      ->add_option("--steps", options->step_count,
                                   "number of steps without a thermostat; half as many run with one")
                      ->capture_default_str()
                      ->option_text("N");
    command->add_flag("--long", options->is_long, "100,000 steps")->excludes(steps);
    command->add_option("--dt", options->time_step, "time step in fs")->capture_default_str()->option_text("FS");
    command->add_option("--temperature", options->temperature, "temperature in K")
        ->capture_default_str()
        ->option_text("K");
    command->add_option("--thresholds", options->thresholds, "JSON file with limits that replace the defaults")
        ->option_text("LIMITS");
    add_report_option(*command, options->report);
    add_json_option(*command, options->json);
    command->footer(
        R"(A check is undecided if the run is too short to decide it; the report says how many steps would.
The exit code is 1 if a check fails or a run breaks, not if checks are undecided. What the other
model of --against fails is shown, but does not count. Recommendations follow the verdict: time
step, precision, what to look at.

Examples:
  # The built-in systems whose elements the model knows
  mlff validate --model X.model --report report
  # Your own structures, against another model, for longer
  mlff validate --model student.safetensors --against X.model --systems mine.xyz --long)");
    command->callback([options, &work] { work = [options] { return run_validate(*options); }; });
}

}  // namespace mlff::app
