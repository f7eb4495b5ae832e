// SPDX-License-Identifier: MIT
// mlff distill: structures -> frames sampled and labelled by a teacher -> a student trained on them -> its errors, seen
// by this library.
//
// Everything is in one folder, and what is there already is not done again:
//   frames.xyz      labelled frames; sampled.json: how many structures they come from, and what was skipped
//   run/            what the trainer writes;  student.safetensors, report.json: the result
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <sstream>

#include <nlohmann/json.hpp>

#include "command.h"
#include "core/error.h"
#include "formats/extxyz.h"
#include "run_program.h"
#include "tools/distill/sampling.h"

namespace mlff::app {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

struct DistillOptions {
    std::string input, output = "distilled", trainer, licence;
    ModelOptions teacher;
    SamplingOptions sampling;
    bool has_labels = false, labels_only = false;
    std::string trainer_options = "--minutes 10";  // separated by spaces
};

// What decides the frames: a folder with frames of other choices is not continued.
Json choices_of(const DistillOptions& options) {
    const SamplingOptions& s = options.sampling;
    return {{"structures", options.input},
            {"teacher", options.teacher.model},
            {"temperatures", s.temperatures},
            {"frames_per_run", s.frames_per_run},
            {"steps_between", s.steps_between},
            {"time_step", s.time_step},
            {"noise", s.noise},
            {"largest_force", s.largest_force},
            {"seed", s.seed}};
}

// Samples structure by structure. Frames are appended and then counted in sampled.json, so that frames of a structure
// that was not finished are cut off.
void sample(const DistillOptions& options, const fs::path& folder) {
    const fs::path frames_path = folder / "frames.xyz", record_path = folder / "sampled.json";
    Json record = {{"choices", choices_of(options)}, {"structures", 0},     {"frames", 0}, {"bytes", 0},
                   {"skipped", Json::object()},      {"is_complete", false}};
    if (fs::exists(record_path)) {
        std::ifstream file(record_path);
        const Json before = Json::parse(file, nullptr, false);
        if (!before.is_object() || before.value("choices", Json()) != record["choices"])
            fail(Status::argument, "--output ", folder.string(),
                 " has frames from another teacher, other structures or other options; choose another folder");
        record = before;
    }
    if (record["is_complete"].get<bool>()) return;
    if (fs::exists(frames_path)) fs::resize_file(frames_path, record["bytes"].get<uintmax_t>());
    Session teacher(load_model(options.teacher.model), options.teacher.session_options());
    std::ofstream frames(frames_path, std::ios::binary | std::ios::app);
    if (!frames) fail(Status::file, frames_path.string(), ": cannot write the file");
    ExtxyzReader reader(options.input);
    Frame structure;
    const bool shows_progress = isatty(STDERR_FILENO);
    while (reader.next(structure)) {
        const int64_t index = reader.frames_read() - 1;
        if (index < record["structures"].get<int64_t>()) continue;
        const SampledFrames sampled = sample_structure(teacher, structure, index, options.sampling);
        std::ostringstream text;
        for (const Frame& frame : sampled.frames) write_extxyz(text, frame);
        frames << text.str() << std::flush;
        if (!frames) fail(Status::file, frames_path.string(), ": cannot write the file");
        record["structures"] = index + 1;
        record["frames"] = record["frames"].get<int64_t>() + static_cast<int64_t>(sampled.frames.size());
        record["bytes"] = record["bytes"].get<uintmax_t>() + text.str().size();
        for (const auto& [reason, count] : sampled.skipped)
            record["skipped"][reason] = record["skipped"].value(reason, int64_t{0}) + count;
        write_text(record_path, record.dump(1) + "\n");
        if (shows_progress)
            std::cerr << "\r" << record["structures"] << " structures, " << record["frames"] << " frames "
                      << std::flush;
    }
    if (shows_progress) std::cerr << "\n";
    if (record["frames"].get<int64_t>() == 0)
        fail(Status::format, options.input, ": all frames of its structures were skipped");
    record["is_complete"] = true;
    write_text(record_path, record.dump(1) + "\n");
    std::cerr << record["frames"] << " frames from " << record["structures"] << " structures in "
              << frames_path.string() << "\n";
    for (const auto& [reason, count] : record["skipped"].items())
        std::cerr << "skipped " << count << ": " << reason << "\n";
}

// The command that puts the trainer beside this program, which may have been installed with a prefix.
std::string install_command(const fs::path& program) {
    const fs::path prefix = program.parent_path().parent_path();
    std::error_code ignored;
    const bool is_installed = fs::exists(prefix / "share/mlff/install_manifest.txt", ignored);
    return is_installed ? concat("scripts/install --trainer --prefix '", prefix.string(), "'")
                        : "scripts/install --trainer";
}

// The trainer named by the user, beside this program, or on the path.
std::string find_trainer(const std::string& named) {
    if (!named.empty()) {
        if (access(named.c_str(), X_OK) != 0) fail(Status::argument, "--trainer ", named, " cannot be run");
        return fs::absolute(named).string();
    }
    std::error_code ignored;
    const fs::path program = fs::read_symlink("/proc/self/exe", ignored), beside = program.parent_path() / "mlff-train";
    if (access(beside.c_str(), X_OK) == 0) return beside.string();
    const char* path = std::getenv("PATH");
    std::istringstream folders(path ? path : "");
    for (std::string folder; std::getline(folders, folder, ':');)
        if (access((fs::path(folder) / "mlff-train").c_str(), X_OK) == 0)
            return fs::absolute(fs::path(folder) / "mlff-train").string();
    fail(Status::unsupported,
         "mlff-train was found neither next to mlff nor in PATH; install it from the sources of mlff with: ",
         install_command(program));
}

void train(const DistillOptions& options, const fs::path& folder, const std::string& trainer, const fs::path& frames) {
    const std::string input_name = fs::path(options.input).filename().string();
    Json card = {{"name", folder.filename().string()},
                 {"teacher",
                  options.has_labels ? "labels of " + input_name : fs::path(options.teacher.model).filename().string()},
                 {"data", options.has_labels ? input_name : "sampled from " + input_name}};
    if (!options.licence.empty()) card["licence"] = options.licence;
    write_text(folder / "card.json", card.dump(1) + "\n");
    std::vector<std::string> words = {trainer,
                                      "train",
                                      frames.string(),
                                      "--output",
                                      (folder / "run").string(),
                                      "--card",
                                      (folder / "card.json").string(),
                                      "--resume"};
    std::istringstream more(options.trainer_options);
    for (std::string word; more >> word;) words.push_back(word);
    const std::string failure = run_silently(words).why_failed();
    if (!failure.empty())
        fail(Status::internal, trainer, " failed: ", failure,
             "; the frames are kept, and the same command continues from them");
}

// Mean absolute errors of the student as this library runs it, in double precision, on frames of all kinds.
Json check_student(const fs::path& student, const fs::path& frames_path) {
    SessionOptions options;
    options.device = "cpu";
    options.precision = Precision::fp64;
    Session session(load_model(student.string()), options);
    ExtxyzReader reader(frames_path.string());
    Frame frame;
    double force_sum = 0, energy_sum = 0;
    int64_t component_count = 0, frame_count = 0;
    while (reader.next(frame)) {
        const SystemView system = frame.view();
        double energy = 0;
        std::vector<double> forces(frame.positions.size());
        Results results;
        results.outputs.energy = &energy;
        results.outputs.forces = forces.data();
        session.evaluate({&system, 1}, {&results, 1});
        const auto energy_label = frame.info_number("energy");
        const AtomColumn* column = frame.find_column("forces");
        const auto* labels = column && column->width == 3 ? std::get_if<std::vector<double>>(&column->values) : nullptr;
        if (!energy_label || !labels) continue;  // the trainer has named it
        for (size_t i = 0; i < forces.size(); ++i) force_sum += std::abs(forces[i] - (*labels)[i]);
        energy_sum += std::abs(energy - *energy_label) / static_cast<double>(frame.atom_count());
        component_count += static_cast<int64_t>(forces.size());
        ++frame_count;
    }
    if (frame_count == 0) fail(Status::format, frames_path.string(), ": no frame with energy and forces");
    return {{"frames", frame_count},
            {"force_meV_per_A", 1e3 * force_sum / static_cast<double>(component_count)},
            {"energy_meV_per_atom", 1e3 * energy_sum / static_cast<double>(frame_count)}};
}

int run_distill(const DistillOptions& options) {
    const fs::path folder = options.output;
    const std::string trainer = options.labels_only ? "" : find_trainer(options.trainer);
    fs::create_directories(folder);
    const fs::path frames = options.has_labels ? fs::path(options.input) : folder / "frames.xyz";
    if (!options.has_labels) sample(options, folder);
    if (options.labels_only) return kGood;
    const fs::path student = folder / "student.safetensors", made = folder / "run" / "model.safetensors";
    train(options, folder, trainer, frames);
    if (!fs::exists(made)) fail(Status::internal, trainer, " wrote no ", made.string());
    fs::copy_file(made, student, fs::copy_options::overwrite_existing);
    const Json report = {{"student", student.string()},
                         {"all_frames", check_student(student, frames)},
                         {"card", load_model(student.string())->description()["card"]}};
    write_text(folder / "report.json", report.dump(1) + "\n");
    std::cout << student.string() << ": forces " << std::fixed << std::setprecision(1)
              << report["all_frames"]["force_meV_per_A"].get<double>() << " meV/A, energies "
              << report["all_frames"]["energy_meV_per_atom"].get<double>() << " meV/atom mean absolute error on its "
              << report["all_frames"]["frames"]
              << " frames, training frames included; report.json has the errors on unseen frames\n";
    return kGood;
}

}  // namespace

void add_distill(CLI::App& app, Work& work) {
    auto options = std::make_shared<DistillOptions>();
    options->teacher.model = "";
    CLI::App* command =
        app.add_subcommand("distill", "sample and label frames with a teacher, and train a student on them");
    command
        ->add_option("FILE", options->input,
                     "structures in extended XYZ; with --labelled: frames with energies and forces")
        ->required();
    options->teacher.add_to(*command, "--teacher");
    command->add_option("--output", options->output, "write everything to FOLDER")
        ->capture_default_str()
        ->option_text("FOLDER");
    command->add_flag("--labelled", options->has_labels, "FILE has energies and forces already: needs no teacher");
    command->add_flag("--labels-only", options->labels_only, "stop when the frames are labelled: no training");

    const std::string sampling = "Sampling";
    command->add_option("--temperatures", options->sampling.temperatures, "temperatures of the sampling dynamics in K")
        ->delimiter(',')
        ->capture_default_str()
        ->option_text("K,K,...")
        ->group(sampling);
    command->add_option("--frames", options->sampling.frames_per_run, "frames for each structure and temperature")
        ->capture_default_str()
        ->check(CLI::PositiveNumber)
        ->option_text("N")
        ->group(sampling);
    command->add_option("--steps-between", options->sampling.steps_between, "steps of dynamics between frames")
        ->capture_default_str()
        ->check(CLI::PositiveNumber)
        ->option_text("N")
        ->group(sampling);
    command->add_option("--dt", options->sampling.time_step, "time step in fs")
        ->capture_default_str()
        ->check(CLI::PositiveNumber)
        ->option_text("FS")
        ->group(sampling);
    command
        ->add_option("--noise", options->sampling.noise,
                     "for each frame add a copy with random displacements of this size in A; 0 = none")
        ->capture_default_str()
        ->check(CLI::NonNegativeNumber)
        ->option_text("A")
        ->group(sampling);
    command->add_option("--largest-force", options->sampling.largest_force, "skip frames with a larger force, in eV/A")
        ->capture_default_str()
        ->check(CLI::PositiveNumber)
        ->option_text("FORCE")
        ->group(sampling);
    command->add_option("--seed", options->sampling.seed, "seed of all random numbers")
        ->capture_default_str()
        ->option_text("N")
        ->group(sampling);

    const std::string training = "Training";
    command->add_option("--trainer", options->trainer, "the program mlff-train (default: next to mlff, else in PATH)")
        ->option_text("PROGRAM")
        ->group(training);
    command->add_option("--licence", options->licence, "licence to write into the student's model card")
        ->option_text("TEXT")
        ->group(training);
    command
        ->add_option("--train-options", options->trainer_options,
                     "further options for 'mlff-train train', as one text separated by spaces")
        ->capture_default_str()
        ->option_text("TEXT")
        ->group(training);
    command->footer(
        R"(The teacher runs Langevin dynamics from each structure and labels frames of it with energy, forces
and stress. mlff-train, which scripts/install --trainer installs, then trains a student on them:
FOLDER/student.safetensors, with its errors in FOLDER/report.json. The same command, run again,
continues where it stopped.

Examples:
  # A student of a MACE model, trained for an hour
  mlff distill structures.xyz --teacher X.model --output student --train-options "--minutes 60"
  # Only label frames
  mlff distill structures.xyz --teacher X.model --output labels --labels-only
  # Train on frames that are labelled already
  mlff distill frames.xyz --labelled --output student)");
    command->callback([options, &work] {
        if (options->teacher.model.empty() && !options->has_labels)
            throw CLI::RequiredError("--teacher (or --labelled)");
        work = [options] { return run_distill(*options); };
    });
}

}  // namespace mlff::app
