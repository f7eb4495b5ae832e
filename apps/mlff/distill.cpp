// SPDX-License-Identifier: MIT
// mlff distill: structures -> frames sampled and labelled by a teacher -> a student trained on them -> its errors, seen
// by this library.
//
// Everything is in one folder, and what is there already is not done again:
//   frames.xyz      labelled frames; sampled.json: how many structures they come from, and what was skipped
//   harvested.xyz   and harvested.json: the same of frames that dynamics with the student harvested
//   (harvested_labels.h) run/, student.safetensors, ...: student_training.h;  report.json: the errors
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <sstream>
#include <utility>

#include <nlohmann/json.hpp>

#include "command.h"
#include "core/error.h"
#include "formats/extxyz.h"
#include "harvested_labels.h"
#include "student_training.h"
#include "tools/distill/sampling.h"

namespace mlff::app {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

struct DistillOptions {
    std::string input, output = "distilled", trainer, licence;
    std::vector<std::string> harvests;  // --continue
    int members = 1;
    ModelOptions teacher;
    SamplingOptions sampling;
    bool has_labels = false, labels_only = false;
    std::string trainer_options = "--minutes 10";  // separated by spaces
};

// What decides the frames: a folder with frames of other choices is not continued.
Json choices_of(const DistillOptions& options) {
    const SamplingOptions& s = options.sampling;
    Json choices = {{"structures", options.input},
                    {"teacher", options.teacher.model},
                    {"temperatures", s.temperatures},
                    {"frames_per_run", s.frames_per_run},
                    {"steps_between", s.steps_between},
                    {"time_step", s.time_step},
                    {"noise", s.noise},
                    {"largest_force", s.largest_force},
                    {"seed", s.seed}};
    if (!options.teacher.session.head.empty()) choices["head"] = options.teacher.session.head;
    return choices;
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

void write_card(const DistillOptions& options, const fs::path& path) {
    const std::string input_name = fs::path(options.input).filename().string();
    Json card = {{"name", fs::path(options.output).filename().string()},
                 {"teacher",
                  options.has_labels ? "labels of " + input_name : fs::path(options.teacher.model).filename().string()},
                 {"data", options.has_labels ? input_name : "sampled from " + input_name}};
    if (!options.licence.empty()) card["licence"] = options.licence;
    write_text(path.string(), card.dump(1) + "\n");
}

// The card of the first training, with what was added since.
void write_continued_card(const fs::path& first, int64_t harvested_frames, const fs::path& path) {
    std::ifstream file(first);
    Json card = Json::parse(file, nullptr, false);
    if (!card.is_object()) fail(Status::format, first.string(), ": expected a JSON object");
    card["data"] = concat(card.value("data", ""), ", and ", harvested_frames, " frames harvested from dynamics");
    write_text(path.string(), card.dump(1) + "\n");
}

// Prints the errors of a student on all its frames, and returns what report.json says.
Json report_errors(const StudentFolder& students, const fs::path& frames) {
    const fs::path student = students.student();
    Json report = {{"student", student.string()}, {"all_frames", student_errors(student, frames)}};
    const Json cards = students.cards();
    if (cards.size() == 1)
        report["card"] = cards[0];
    else
        report["cards"] = cards;
    std::cout << student.string() << ": forces " << std::fixed << std::setprecision(1)
              << report["all_frames"]["force_meV_per_A"].get<double>() << " meV/A, energies "
              << report["all_frames"]["energy_meV_per_atom"].get<double>() << " meV/atom mean absolute error on its "
              << report["all_frames"]["frames"]
              << " frames, training frames included; report.json has the errors on unseen frames\n";
    return report;
}

TrainingOrder training_order(const DistillOptions& options, const std::string& trainer) {
    const fs::path folder = options.output;
    return {trainer, options.trainer_options, options.has_labels ? fs::path(options.input) : folder / "frames.xyz",
            folder / "harvested.xyz", folder / "card.json"};
}

int begin_student(const DistillOptions& options) {
    const fs::path folder = options.output;
    const std::string trainer = options.labels_only ? "" : find_trainer(options.trainer);
    if (HarvestedLabels::has_rounds(folder))
        fail(Status::argument, "--output ", folder.string(),
             " has a student that went on with harvested frames; go on with --continue, or choose another folder");
    fs::create_directories(folder);
    if (!options.has_labels) sample(options, folder);
    if (options.labels_only) return kGood;
    const TrainingOrder order = training_order(options, trainer);
    write_card(options, order.card);
    const StudentFolder students(folder, options.members);
    students.train(0, order);
    write_text((folder / "report.json").string(), report_errors(students, order.frames).dump(1) + "\n");
    return kGood;
}

struct Teacher {
    std::string model, head;

    std::string text() const { return head.empty() ? model : model + ", head " + head; }
};

// The teacher that labelled the frames of a folder; without a model if there are none.
Teacher teacher_of(const fs::path& folder) {
    std::ifstream file(folder / "sampled.json");
    const Json record = Json::parse(file, nullptr, false);
    if (!record.is_object() || !record.value("is_complete", false)) return {};
    return {record["choices"].value("teacher", ""), record["choices"].value("head", "")};
}

// The teacher of the frames that are gone on from, which also labels what was harvested.
Teacher teacher_for_harvests(const DistillOptions& options, const fs::path& folder) {
    const Teacher labelled_by = teacher_of(folder);
    const std::string& known = labelled_by.model;
    const std::string &given = options.teacher.model, &head = options.teacher.session.head;
    if (known.empty() && !options.has_labels)
        fail(Status::argument, "--output ", folder.string(),
             " has no complete frames of mlff distill to go on from; with frames of your own, name them: FILE "
             "--labelled");
    if (known.empty() && given.empty())
        fail(Status::argument, "--continue with --labelled needs --teacher, for labels of the harvested frames");
    if (!known.empty() && !given.empty() && given != known)
        fail(Status::argument, "--teacher ", given, " is not ", known, ", which labelled the frames in ",
             folder.string());
    if (!known.empty() && !head.empty() && head != labelled_by.head)
        fail(Status::argument, "--head ", head, ": the frames in ", folder.string(), " were labelled by ",
             labelled_by.text());
    return known.empty() ? Teacher{given, head} : labelled_by;
}

void label_harvests(const DistillOptions& options, HarvestedLabels& labels) {
    Session teacher(load_model(options.teacher.model), options.teacher.session_options());
    labels.label(teacher, options.harvests, options.sampling.largest_force);
    std::cerr << labels.frame_count() << " harvested frames in " << labels.frames_path().string() << "\n";
    for (const auto& [reason, count] : labels.skipped().items())
        std::cerr << "skipped " << count << ": " << reason << "\n";
}

// Labels what is new in the harvests, and trains on it. A round that was begun before is finished first.
int go_on_with_harvests(DistillOptions options) {
    const fs::path folder = options.output;
    const std::string trainer = options.labels_only ? "" : find_trainer(options.trainer);
    const Teacher teacher = teacher_for_harvests(options, folder);
    options.teacher.model = teacher.model;
    options.teacher.session.head = teacher.head;
    HarvestedLabels labels(folder, teacher.text());
    if (options.labels_only) {
        if (labels.has_open_round())
            fail(Status::argument, "a round of training with the frames in ", labels.frames_path().string(),
                 " was begun: finish it first, without --labels-only");
        label_harvests(options, labels);
        return kGood;
    }
    const StudentFolder students = StudentFolder::open(folder);
    TrainingOrder order = training_order(options, trainer);
    const fs::path first_card = std::exchange(order.card, folder / "card-continued.json");
    const int first_round = labels.has_open_round() ? labels.round() : labels.round() + 1;
    for (;;) {
        if (!labels.has_open_round()) {
            label_harvests(options, labels);
            if (!labels.has_new_frames()) break;
            labels.open_round(student_errors(students.student(), labels.frames_path()));
        }
        std::cerr << "round " << labels.round() << ": training goes on with " << labels.frame_count()
                  << " harvested frames\n";
        write_continued_card(first_card, labels.frame_count(), order.card);
        students.train(labels.round(), order);
        labels.close_round();
    }
    if (labels.round() < first_round) {
        std::cout << "nothing new: the student was trained on all frames of the harvest before\n";
        return kGood;
    }
    Json report = report_errors(students, order.frames);
    const Json &before = labels.errors_before(), after = student_errors(students.student(), labels.frames_path());
    report["harvested"] = {{"before", before}, {"after", after}, {"round", labels.round()}};
    write_text((folder / "report.json").string(), report.dump(1) + "\n");
    std::cout << "on the " << after["frames"] << " harvested frames: forces " << before["force_meV_per_A"].get<double>()
              << " -> " << after["force_meV_per_A"].get<double>() << " meV/A\n";
    return kGood;
}

}  // namespace

void add_distill(CLI::App& app, Work& work) {
    auto options = std::make_shared<DistillOptions>();
    options->teacher.model = "";
    CLI::App* command =
        app.add_subcommand("distill", "sample and label frames with a teacher, and train a student on them");
    command->add_option("FILE", options->input,
                        "structures in extended XYZ; with --labelled: frames with energies and forces; not needed with "
                        "--continue");
    options->teacher.add_to(*command, "--teacher");
    command->add_option("--output", options->output, "write everything to FOLDER")
        ->capture_default_str()
        ->option_text("FOLDER");
    command->add_flag("--labelled", options->has_labels, "FILE has energies and forces already: needs no teacher");
    command->add_flag("--labels-only", options->labels_only, "stop when the frames are labelled: no training");
    command
        ->add_option("--continue", options->harvests,
                     "label the frames that 'mlff md --harvest DIR' added to DIR, and go on training the student in "
                     "--output with them; can be given several times")
        ->allow_extra_args(false)
        ->option_text("DIR");

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
    command
        ->add_option("--members", options->members,
                     "train several students, with seeds 1, 2, ...: FOLDER/committee.txt is the committee of them")
        ->capture_default_str()
        ->check(CLI::Range(1, 64))
        ->excludes("--continue")
        ->option_text("N")
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
  mlff distill frames.xyz --labelled --output student
  # Go on with frames that dynamics with the student harvested
  mlff distill --continue harvest --output student)");
    command->callback([options, &work] {
        const bool goes_on = !options->harvests.empty();
        if (options->input.empty() && (!goes_on || options->has_labels)) throw CLI::RequiredError("FILE");
        if (!options->input.empty() && goes_on && !options->has_labels)
            fail(Status::argument, "--continue takes the frames in --output and needs no FILE");
        if (options->teacher.model.empty() && !options->has_labels && !goes_on)
            throw CLI::RequiredError("--teacher (or --labelled)");
        if (options->members > 1 && options->trainer_options.find("--seed") != std::string::npos)
            fail(Status::argument, "--train-options: --seed is given by --members");
        work = [options, goes_on] { return goes_on ? go_on_with_harvests(*options) : begin_student(*options); };
    });
}

}  // namespace mlff::app
