// SPDX-License-Identifier: MIT
// mlff-train train: trains a model on labelled frames. Writes the model file, the log, the learning curve and a
// checkpoint.
#include <ATen/Parallel.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>

#include "core/elements.h"
#include "core/output_file.h"
#include "train/command.h"
#include "train/device_choice.h"
#include "train/learning_curve.h"
#include "train/message_kernels.h"
#include "train/model_file.h"
#include "train/trainer.h"

namespace mlff::train {
namespace {

using Json = nlohmann::json;

struct TrainOptions {
    std::vector<std::string> data, more_data;
    std::string output = "run", card, start, device = "auto";
    bool has_shape = false;  // some of --hidden, --blocks, --radial and --cutoff was given
    std::string energy_loss = "huber", force_loss = "huber", force_weighting = "atoms", messages = "auto";
    double repulsion_factor = 1.0;
    FrameRules rules;
    TrainerOptions trainer;
    bool resume = false, tf32 = false, is_deterministic = false;
    int threads = 0;
};

Json read_card(const std::string& path) {
    if (path.empty()) return Json::object();
    std::ifstream file(path);
    if (!file) fail(Status::file, path, ": cannot be read");
    const Json card = Json::parse(file, nullptr, false);
    if (!card.is_object()) fail(Status::format, path, ": expected a JSON object (--card)");
    return card;
}

void write_text(const std::string& path, const std::string& text) {
    OutputFile file(path);
    file.write(text.data(), text.size());
    file.commit();
}

void describe(const char* name, const TrainingSet& set) {
    std::cerr << name << ": " << set.frame_count << " frames, " << set.first_atom.back() << " atoms, "
              << set.first_edge.back() << " edges\n";
}

ModelErrors errors_of(const at::Tensor& flat, const TrainOptions& options, const TrainingSet& set,
                      const ElementTable& elements, size_t kind_count) {
    const ParameterLayout layout = parameter_layout(options.trainer.shape, elements.size());
    const Parameters parameters(options.trainer.shape, layout, flat.to(set.edge_vector.device()), false);
    return model_errors(parameters, set, BatchMaker(set, options.trainer.shape, elements, false), options.trainer.loss,
                        all_frames(set), fitting_size(set, std::max<int64_t>(256, options.trainer.batch_frames)),
                        kind_count, elements);
}

// The model to start from, if there is one. Its shape is that of the run.
std::optional<StoredModel> read_start(TrainOptions& options) {
    if (options.start.empty()) return {};
    StoredModel model = read_model(options.start);
    const ModelShape &given = options.trainer.shape, &found = model.shape;
    if (options.has_shape && (given.hidden != found.hidden || given.blocks != found.blocks ||
                              given.radial != found.radial || given.cutoff != found.cutoff))
        fail(Status::argument, "--start ", options.start, " has ", found.hidden, " channels, ", found.blocks,
             " blocks, ", found.radial, " radial functions and a cutoff of ", found.cutoff,
             " A; leave out --hidden, --blocks, --radial and --cutoff, or give the same");
    options.trainer.shape = found;
    options.trainer.start = model.parameters.to(at::kFloat);
    return model;
}

// All frames; those of --more get their splits after the others and do not change theirs.
FrameSet read_frames(const TrainOptions& options) {
    FrameSet frames = read_labelled_frames(options.data, options.rules);
    if (!options.more_data.empty()) frames.append(read_labelled_frames(options.more_data, options.rules));
    return frames;
}

// What a start brings stays as it is: energies and scales belong to its weights. A training frame with another element
// is an error.
ElementTable elements_of(const StoredModel& start, const FrameSet& frames, const std::string& path) {
    for (const LabelledFrame& frame : frames.frames)
        for (const int32_t number : frame.atomic_numbers)
            if (frame.split == Split::train && start.elements.index_of(number) < 0)
                fail(Status::format, "the training frames have ", element_symbol(number), ", which --start ", path,
                     " does not know");
    ElementTable elements = start.elements;
    elements.closest.clear();
    return elements;
}

int run_train(TrainOptions options) {
    TrainerOptions& trainer = options.trainer;
    const std::optional<StoredModel> start = read_start(options);
    trainer.shape.check();
    trainer.loss.energy = measure_of_text(options.energy_loss);
    trainer.loss.force = measure_of_text(options.force_loss);
    trainer.loss.weighting = force_weighting_of_text(options.force_weighting);
    if (trainer.loss.energy == Measure::length)
        fail(Status::argument, "--energy-loss norm: norm is for forces only; use mse, l1 or huber");
    if (trainer.schedule.steps <= 0 && trainer.schedule.minutes <= 0)
        fail(Status::argument, "give the length of the run with --steps or --minutes");
    const Json card_base = read_card(options.card);
    const at::Device device = device_of_text(options.device);
    if (options.threads > 0) at::set_num_threads(options.threads);
    if (options.tf32 && device.is_cuda()) at::globalContext().setFloat32MatmulPrecision("high");
    if (options.is_deterministic) at::globalContext().setDeterministicAlgorithms(true, false);
    trainer.uses_graph = trainer.uses_graph && device.is_cuda();
    trainer.pads_batches = trainer.pads_batches || trainer.uses_graph;
    if (options.messages != "auto" && options.messages != "tensors" && options.messages != "kernels")
        fail(Status::argument, "--messages is auto, tensors or kernels, not '", options.messages, "'");
    if (options.messages == "kernels" && device.is_cuda() && !has_message_kernels_cuda())
        fail(Status::argument, "--messages kernels: this build has no GPU kernels (building them needs nvcc)");
    trainer.uses_kernels =
        options.messages == "auto" ? device.is_cuda() && has_message_kernels_cuda() : options.messages == "kernels";
    std::filesystem::create_directories(options.output);
    trainer.checkpoint_path = options.output + "/checkpoint.safetensors";

    FrameSet frames = read_frames(options);
    for (const auto& [reason, count] : frames.skipped)
        std::cerr << "skipped " << count << " frames: " << reason << "\n";
    if (frames.is_dealt_by_frame)
        std::cerr << "few molecules: validation and test are other frames of those that are trained on\n";
    const ElementTable elements = start ? elements_of(*start, frames, options.start)
                                        : fit_elements(frames, trainer.shape.cutoff, options.repulsion_factor);
    int64_t unknown = 0;
    const TrainingSet training = make_training_set(frames, Split::train, trainer.shape, elements, device, unknown);
    const TrainingSet validation = make_training_set(frames, Split::valid, trainer.shape, elements, device, unknown);
    const TrainingSet test = make_training_set(frames, Split::test, trainer.shape, elements, device, unknown);
    if (unknown > 0)
        std::cerr << "skipped " << unknown << " validation and test frames: an element that no training frame has\n";
    // This is the identity on the training data, so training does not need it. It is part of the written model and of
    // its errors.
    ElementTable stored_elements = elements;
    stored_elements.closest = shortest_distances(frames, trainer.shape.cutoff, elements);
    if (start)  // it has seen what it was trained on before, too
        for (size_t pair = 0; pair < start->elements.closest.size(); ++pair)
            stored_elements.closest[pair] = std::min(stored_elements.closest[pair], start->elements.closest[pair]);
    frames.frames = {};
    describe("train", training);
    describe("valid", validation);
    describe("test", test);
    const ParameterLayout layout = parameter_layout(trainer.shape, elements.size());
    std::cerr << "elements " << symbols_text(elements.atomic_numbers) << ", " << layout.total << " parameters, device "
              << device.str() << "\n";

    const bool resume = options.resume && std::filesystem::exists(trainer.checkpoint_path);
    RunLog log(options.output + "/log.csv", resume);
    const TrainerResult result =
        run_training(trainer, elements, training, validation, frames.kinds.size(), resume, log);
    std::cerr << "speed: " << result.steps_per_second << " steps/s, " << result.frames_per_second
              << " frames/s, CUDA graph " << (result.used_graph ? "yes" : "no") << "\n";
    write_learning_curve(options.output + "/learning_curve.svg", log.rows(), result.state.history);
    if (!result.is_complete) {
        std::cerr << "stopped at step " << result.state.step << "; go on with --resume\n";
        return 0;
    }

    StoredModel model{trainer.shape, stored_elements, result.parameters, card_base};
    if (frames.is_dealt_by_frame) model.card["split"] = "by frame: the test has molecules of the training set";
    const size_t kinds = frames.kinds.size();
    Json errors = {
        {"validation",
         errors_of(result.parameters, options, validation, stored_elements, kinds).json(elements, frames.kinds)}};
    if (test.frame_count > 0)
        errors["test"] =
            errors_of(result.parameters, options, test, stored_elements, kinds).json(elements, frames.kinds);
    std::vector<std::string> symbols;
    for (const int number : elements.atomic_numbers) symbols.emplace_back(element_symbol(number));
    model.card["elements"] = symbols;
    model.card["errors"] = errors;
    model.card["training"] = {{"frames", training.frame_count},  {"steps", result.state.step},
                              {"epochs", result.state.epoch},    {"best_step", result.state.best_step},
                              {"seconds", result.state.seconds}, {"seed", trainer.seed}};
    if (start) model.card["training"]["start"] = std::filesystem::path(options.start).filename().string();
    write_model(options.output + "/model.safetensors", model);
    const Json summary = {{"errors", errors},
                          {"training", model.card["training"]},
                          {"elements", symbols},
                          {"parameters", layout.total},
                          {"device", device.str()},
                          {"cuda_graph", result.used_graph},
                          {"steps_per_second", result.steps_per_second},
                          {"frames_per_second", result.frames_per_second},
                          {"skipped", frames.skipped},
                          {"unknown_elements", unknown},
                          {"model", "model.safetensors"}};
    write_text(options.output + "/summary.json", summary.dump(1) + "\n");
    std::cerr << errors.dump(1) << "\n";
    return 0;
}

}  // namespace

void add_train(CLI::App& app, Work& work) {
    auto options = std::make_shared<TrainOptions>();
    CLI::App* command =
        app.add_subcommand("train", "train a model; writes model, log, learning curve and checkpoint into a folder");
    TrainerOptions& trainer = options->trainer;
    command->add_option("DATA", options->data, "extended XYZ or packed frames (src/train/packed_frames.h)")->required();
    command
        ->add_option("--more", options->more_data,
                     "further frames, whose splits are made without those of DATA and leave them as they are")
        ->allow_extra_args(false);
    command->add_option("--start", options->start,
                        "begin with the weights, shape, elements and repulsion of this model, instead of random ones");
    command->add_option("--output", options->output, "folder for everything that is written")->capture_default_str();
    command->add_option("--card", options->card, "JSON object that goes into the model file, with errors added");
    command->add_option("--device", options->device, "auto, cpu, cuda[:i]")->capture_default_str();
    command->add_option("--threads", options->threads, "CPU threads of LibTorch; 0 = its own choice");
    command->add_flag("--tf32", options->tf32, "TF32 matrix products on the GPU");
    command->add_flag("--cuda-graph", trainer.uses_graph,
                      "record a step once and replay it; falls back to plain launches");
    command
        ->add_option("--messages", options->messages,
                     "auto, tensors (LibTorch operations) or kernels (written for this)")
        ->capture_default_str();
    command->add_flag("--pad", trainer.pads_batches, "pad batches to one size as --cuda-graph does");
    command->add_flag("--deterministic", options->is_deterministic, "deterministic kernels on the GPU too (slow)");
    command->add_flag("--resume", options->resume, "go on from the checkpoint in the output folder, if there is one");

    command->add_option("--hidden", trainer.shape.hidden)->capture_default_str();
    command->add_option("--blocks", trainer.shape.blocks)->capture_default_str();
    command->add_option("--radial", trainer.shape.radial)->capture_default_str();
    command->add_option("--cutoff", trainer.shape.cutoff, "angstrom")->capture_default_str();
    command->add_option("--repulsion", options->repulsion_factor, "times the covalent radii; 0 = no repulsion")
        ->capture_default_str();

    command->add_option("--steps", trainer.schedule.steps, "planned length of the run");
    command->add_option("--minutes", trainer.schedule.minutes,
                        "planned length as wall time; the schedule follows the clock");
    command->add_option("--batch", trainer.batch_frames, "frames in a batch")
        ->capture_default_str()
        ->check(CLI::PositiveNumber);
    command->add_option("--learning-rate", trainer.schedule.peak_rate)->capture_default_str();
    command->add_option("--final-rate", trainer.schedule.final_rate_fraction, "of the learning rate")
        ->capture_default_str();
    command->add_option("--warmup-steps", trainer.schedule.warmup_steps)->capture_default_str();
    command->add_option("--ema", trainer.schedule.ema_decay, "decay of the average of weights")->capture_default_str();
    command->add_option("--weight-decay", trainer.optimizer.weight_decay)->capture_default_str();
    command->add_option("--clip", trainer.optimizer.largest_norm, "largest norm of the gradient; 0 = any")
        ->capture_default_str();
    command->add_option("--energy-loss", options->energy_loss, "mse, l1, huber")->capture_default_str();
    command->add_option("--force-loss", options->force_loss, "mse, l1, huber, norm")->capture_default_str();
    command
        ->add_option("--force-weighting", options->force_weighting,
                     "atoms: all atoms count the same; frames: all frames; root: between the two")
        ->capture_default_str();
    command->add_option("--energy-delta", trainer.loss.energy_delta, "Huber, eV/atom")->capture_default_str();
    command->add_option("--force-delta", trainer.loss.force_delta, "Huber, eV/angstrom")->capture_default_str();
    command->add_option("--energy-weight", trainer.schedule.energy_weight)->capture_default_str();
    command->add_option("--energy-weight-final", trainer.schedule.energy_weight_final)->capture_default_str();
    command
        ->add_option("--energy-ramp-start", trainer.schedule.energy_ramp_start,
                     "share of the run after which the weight moves")
        ->capture_default_str();
    command->add_option("--force-weight", trainer.force_weight)->capture_default_str();
    command->add_option("--stress-weight", trainer.stress_weight)->capture_default_str();
    command->add_option("--seed", trainer.seed)->capture_default_str();
    command->add_option("--validations", trainer.validations, "how many, spread over the run")
        ->capture_default_str()
        ->check(CLI::PositiveNumber);
    command->add_option("--validation-frames", trainer.validation_frames, "at most; 0 = all")->capture_default_str();
    command->add_option("--patience", trainer.patience, "end after so many validations without improvement; 0 = never")
        ->capture_default_str();
    command->add_option("--log-every", trainer.log_every, "steps")->capture_default_str()->check(CLI::PositiveNumber);
    command->add_option("--stop-after", trainer.stop_after, "steps of this process; then a checkpoint and the end");
    command->add_flag("--count-operations", trainer.counts_operations, "print the operations of one step");
    command
        ->add_option("--shortest-distance", options->rules.shortest_distance,
                     "angstrom; frames with closer atoms are skipped")
        ->capture_default_str();
    command
        ->add_option("--largest-force", options->rules.largest_force, "eV/angstrom; frames above are skipped; 0 = any")
        ->capture_default_str();
    command->callback([options, command, &work] {
        for (const char* name : {"--hidden", "--blocks", "--radial", "--cutoff"})
            options->has_shape |= command->count(name) > 0;
        work = [options] { return run_train(*options); };
    });
}

}  // namespace mlff::train
