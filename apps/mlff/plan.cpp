// SPDX-License-Identifier: MIT
// mlff plan: what a file will need and how long it will take, before running it.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>

#include <nlohmann/json.hpp>

#include "command.h"
#include "core/elements.h"
#include "core/error.h"
#include "formats/extxyz.h"
#include "gpu/runtime/gpu.h"
#include "gpu/runtime/host_facts.h"
#include "run_program.h"
#include "sessions.h"
#include "tools/bench/results.h"
#include "tools/plan/plan.h"

namespace mlff::app {
namespace {

struct PlanOptions {
    std::string input, json, calibration;
    ModelOptions model;
    double time_step = 0.5;  // fs
    bool calibrates = false, is_quick = false;
};

// The frame with the most atoms and, among these, the most edges.
struct LargestFrame {
    Frame frame;
    int64_t index = 0;
    plan::Load load;
};

void check_elements(const Frame& frame, const std::vector<int>& known) {
    for (size_t atom = 0; atom < frame.atomic_numbers.size(); ++atom)
        if (std::find(known.begin(), known.end(), frame.atomic_numbers[atom]) == known.end())
            fail(Status::system, "atom ", atom, " is ", element_symbol(frame.atomic_numbers[atom]),
                 ", which the model does not know; it knows ", symbols_text(known));
}

LargestFrame find_largest(const std::string& path, const ModelSummary& summary, int thread_count) {
    ThreadTeam team(thread_count);
    ExtxyzReader reader(path);
    std::optional<LargestFrame> largest;
    Frame frame;
    while (reader.next(frame)) {
        const int64_t index = reader.frames_read() - 1;
        try {
            check_elements(frame, summary.elements);
            if (largest && frame.atom_count() < largest->load.atoms) continue;
            const plan::Load load = {frame.atom_count(), plan::count_edges(frame.view(), summary.cutoff, team)};
            if (!largest || load.atoms > largest->load.atoms || load.edges > largest->load.edges)
                largest = LargestFrame{frame, index, load};
        } catch (const Error& error) {
            throw Error(error.status(), concat(path, ": frame ", index, ": ", error.what()));
        }
    }
    if (!largest) fail(Status::format, path, ": no frame in the file");
    return std::move(*largest);
}

// The arguments of the command that makes a calibration for these options.
std::vector<std::string> calibrate_arguments(const PlanOptions& plan, const std::string& head) {
    const ModelOptions& options = plan.model;
    std::vector<std::string> words = {"bench", "--calibrate"};
    const auto add = [&](const char* option, const std::string& value) { words.insert(words.end(), {option, value}); };
    if (plan.is_quick) words.push_back("--quick");
    if (options.model != "builtin") add("--model", options.model);
    if (options.session.device != "auto") add("--device", options.session.device);
    if (options.precision != "auto") add("--precision", options.precision);
    if (!head.empty()) add("--head", head);
    if (options.session.exact_radial) words.push_back("--exact-radial");
    if (options.session.thread_count != 0) add("--threads", std::to_string(options.session.thread_count));
    if (!plan.calibration.empty()) add("--calibration", plan.calibration);
    return words;
}

plan::CalibrationKey key_of(const PlanOptions& options, const Session& session) {
    return plan::key_of(session, plan_model_id(options.model.model), options.model.session.exact_radial);
}

bool is_calibrated(const PlanOptions& options, const std::shared_ptr<const Model>& model,
                   const SessionOptions& session_options) {
    std::error_code ignored;
    if (!options.calibration.empty()) return std::filesystem::exists(options.calibration, ignored);
    std::string why_not;
    return plan::CalibrationStore().find(key_of(options, Session(model, session_options)), &why_not).has_value();
}

// The process that calibrates has said why.
struct CalibrationFailed {
    int exit_code = 0;
};

// In a process of its own, whose memory is that of the model and of nothing else.
void calibrate(const PlanOptions& options, const std::string& head) {
    std::error_code ignored;
    const std::string program = std::filesystem::read_symlink("/proc/self/exe", ignored).string();
    std::vector<std::string> words = calibrate_arguments(options, head);
    words.insert(words.begin(), program.empty() ? "mlff" : program);
    const ProgramResult result = run_silently(words);
    if (result.signal != 0 || result.exit_code == 127)
        fail(Status::internal, "--calibrate: 'mlff bench --calibrate' failed: ", result.why_failed());
    if (result.exit_code != 0) throw CalibrationFailed{result.exit_code};
}

struct Answer {
    LargestFrame largest;
    std::string device, device_reason, precision, why_no_calibration;
    int threads = 0;
    std::optional<plan::Calibration> calibration;
    std::optional<plan::MemoryPlan> memory;
    bool is_from_buffers = false;
    double available = 0;
    std::optional<plan::TimePlan> time;
};

Answer make_answer(const PlanOptions& options) {
    const auto model = load_model(options.model.model);
    const ModelSummary& summary = model->summary();
    if (!(summary.cutoff > 0))
        fail(Status::unsupported, options.model.model,
             ": cannot predict the cost of this model: it finds its neighbours itself, in its own process");
    SessionOptions session_options = options.model.session_options();
    Answer answer;
    answer.largest = find_largest(options.input, summary, session_options.thread_count);
    session_options.head = head_of(answer.largest.frame, *model, session_options.head);
    if (options.calibrates && !is_calibrated(options, model, session_options)) calibrate(options, session_options.head);
    std::vector<int64_t> used_before;  // on each GPU, before there is a session
    if (session_options.device != "cpu" && session_options.device != "reference")
        for (const Gpu& gpu : gpu_inventory().gpus) used_before.push_back(gpu_used_bytes(gpu.ordinal));
    Session session(model, session_options);
    answer.device = session.device_name();
    answer.device_reason = session.device_reason();
    answer.precision = precision_name(session.precision());
    answer.threads = session.thread_count();
    const plan::CalibrationKey key = key_of(options, session);
    if (options.calibration.empty())
        answer.calibration = plan::CalibrationStore().find(key, &answer.why_no_calibration);
    else
        answer.calibration = plan::read_calibration(options.calibration, key);
    const plan::Load& load = answer.largest.load;
    if (session.memory_forecasts()) {
        answer.memory = plan::plan_gpu_memory(session, answer.largest.frame.view(),
                                              used_before.at(static_cast<size_t>(session.device().index)),
                                              session_options.gpu_memory_limit_bytes)
                            .plan;
        answer.is_from_buffers = true;
        answer.available = answer.memory->available_bytes;
    } else {
        answer.available = static_cast<double>(available_memory());
        if (answer.calibration) answer.memory = plan::plan_memory(*answer.calibration, load, answer.available);
    }
    if (answer.calibration) answer.time = plan::plan_time(*answer.calibration, load);
    return answer;
}

nlohmann::json answer_json(const PlanOptions& options, const Answer& answer) {
    using Value = nlohmann::json;
    const plan::Load& load = answer.largest.load;
    const auto whole = [](double value) { return static_cast<int64_t>(std::llround(std::min(value, 9e18))); };
    Value memory = {{"available_B", whole(answer.available)},
                    {"needed_B", nullptr},
                    {"fits", nullptr},
                    {"largest_atoms", nullptr},
                    {"from", nullptr}},
          time, calibration;
    if (answer.memory)
        memory = {{"available_B", whole(answer.available)},
                  {"needed_B", whole(answer.memory->needed_bytes)},
                  {"fits", answer.memory->fits()},
                  {"largest_atoms", answer.memory->largest_atoms},
                  {"from", answer.is_from_buffers ? "buffers" : "calibration"}};
    if (answer.time)
        time = {{"evaluation_s", answer.time->evaluation},
                {"step_s", answer.time->step},
                {"steps_per_s", answer.time->steps_per_second()},
                {"time_step_fs", options.time_step},
                {"ns_per_day", answer.time->nanoseconds_per_day(options.time_step)}};
    if (answer.calibration)
        calibration = {{"made", answer.calibration->made},
                       {"mlff", answer.calibration->mlff_version},
                       {"quick", answer.calibration->is_quick},
                       {"memory_error", answer.calibration->memory_error},
                       {"evaluation_error", answer.calibration->evaluation_error},
                       {"step_error", answer.calibration->step_error}};
    return {{"file", options.input},
            {"frame", answer.largest.index},
            {"atoms", load.atoms},
            {"edges", load.edges},
            {"model", options.model.model},
            {"device", answer.device},
            {"device_reason", answer.device_reason},
            {"precision", answer.precision},
            {"threads", answer.threads},
            {"memory", memory},
            {"time", time},
            {"calibration", calibration},
            {"why_no_calibration", answer.calibration ? Value() : Value(answer.why_no_calibration)}};
}

void print_answer(const PlanOptions& options, const Answer& answer) {
    using bench::quantity_text;
    const plan::Load& load = answer.largest.load;
    std::printf("%s, frame %lld: %lld atoms, %lld edges (%.1f per atom)\n", options.input.c_str(),
                static_cast<long long>(answer.largest.index), static_cast<long long>(load.atoms),
                static_cast<long long>(load.edges),
                load.atoms > 0 ? static_cast<double>(load.edges) / static_cast<double>(load.atoms) : 0);
    std::printf("model %s, %s (%s), %s, %s\n", options.model.model.c_str(), answer.device.c_str(),
                answer.device_reason.c_str(), answer.precision.c_str(), bench::threads_text(answer.threads).c_str());
    if (answer.memory) {
        std::printf("memory needed     %s%s\n", quantity_text(answer.memory->needed_bytes, "B").c_str(),
                    answer.memory->fits() ? "" : ": MORE THAN AVAILABLE");
        std::printf("memory available  %s, enough for about %lld atoms at this density\n",
                    quantity_text(answer.available, "B").c_str(), static_cast<long long>(answer.memory->largest_atoms));
    } else {
        std::printf("memory available  %s\n", quantity_text(answer.available, "B").c_str());
    }
    if (answer.time) {
        std::printf("one evaluation    %s\n", quantity_text(answer.time->evaluation, "s").c_str());
        std::printf("dynamics          %.4g steps/s, %.4g ns/day with a time step of %g fs\n",
                    answer.time->steps_per_second(), answer.time->nanoseconds_per_day(options.time_step),
                    options.time_step);
    }
    std::fflush(stdout);
}

int run_plan_command(const PlanOptions& options) {
    if (!(options.time_step > 0) || !std::isfinite(options.time_step))
        fail(Status::argument, "--dt ", options.time_step, ": expected more than 0 fs");
    if (options.is_quick && !options.calibrates) fail(Status::argument, "--quick needs --calibrate");
    Answer answer;
    try {
        answer = make_answer(options);
    } catch (const CalibrationFailed& failed) {
        return failed.exit_code;
    }
    if (options.json != "-") print_answer(options, answer);
    if (!options.json.empty())
        write_text(options.json,
                   answer_json(options, answer).dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
    if (!answer.calibration) {
        std::cerr << "mlff: " << answer.why_no_calibration << "; without it "
                  << (answer.memory ? "times are" : "memory and times are")
                  << " not predicted; measure once, for about a minute, with --calibrate or with: mlff";
        for (const std::string& word : calibrate_arguments(options, options.model.session.head))
            std::cerr << " " << word;
        std::cerr << "\n";
        return kBadInput;
    }
    return answer.memory->fits() ? kGood : kCheckFailed;
}

}  // namespace

void add_plan(CLI::App& app, Work& work) {
    auto options = std::make_shared<PlanOptions>();
    CLI::App* command = app.add_subcommand("plan", "predict the memory and the speed of a run");
    command
        ->add_option("FILE", options->input,
                     "structures in extended XYZ; '-' = standard input; the largest frame counts")
        ->required();
    options->model.add_to(*command);
    command->add_option("--dt", options->time_step, "time step in fs, for ns/day")
        ->capture_default_str()
        ->option_text("FS");
    command
        ->add_option("--calibration", options->calibration,
                     "file with the cost model of 'mlff bench --calibrate' (default: in the user's data folder)")
        ->option_text("CALIBRATION");
    command->add_flag("--calibrate", options->calibrates,
                      "if there is no calibration yet, measure it first, as 'mlff bench --calibrate' does");
    command->add_flag("--quick", options->is_quick, "with --calibrate: take seconds instead of a minute; rough");
    add_json_option(*command, options->json);
    command->footer(
        R"(Predictions need a calibration of this model on this machine, which --calibrate measures once.
The exit code is 1 if the largest frame does not fit into memory, 3 if there is no calibration.

Examples:
  # Measure what the model costs here, if that is not known yet, and ask
  mlff plan box.xyz --model X.model --dt 1 --calibrate)");
    command->callback([options, &work] { work = [options] { return run_plan_command(*options); }; });
}

}  // namespace mlff::app
