// SPDX-License-Identifier: MIT
// mlff-train evaluate: errors of a saved model on labelled frames.
#include <iostream>
#include <memory>

#include "core/output_file.h"
#include "train/command.h"
#include "train/device_choice.h"
#include "train/errors.h"
#include "train/model_file.h"

namespace mlff::train {
namespace {

struct EvaluateOptions {
    std::string model, split = "test", json, device = "auto";
    std::vector<std::string> data;
    int64_t batch_frames = 256;
};

int run_evaluate(const EvaluateOptions& options) {
    const StoredModel model = read_model(options.model);
    const at::Device device = device_of_text(options.device);
    FrameSet frames = read_labelled_frames(options.data, {});
    if (options.split == "all")
        for (LabelledFrame& frame : frames.frames) frame.split = Split::test;
    for (const auto& [reason, count] : frames.skipped)
        std::cerr << "skipped " << count << " frames: " << reason << "\n";
    int64_t unknown = 0;
    const Split split = options.split == "all" ? Split::test : split_of_text(options.split);
    const TrainingSet set = make_training_set(frames, split, model.shape, model.elements, device, unknown);
    if (unknown > 0)
        std::cerr << "skipped " << unknown << " frames: they contain elements that the model does not know\n";
    if (set.frame_count == 0) fail(Status::format, "the data have no usable frame of split '", options.split, "'");
    const ParameterLayout layout = parameter_layout(model.shape, model.elements.size());
    const Parameters parameters(model.shape, layout, model.parameters.to(device, at::kFloat), false);
    const ModelErrors errors =
        model_errors(parameters, set, BatchMaker(set, model.shape, model.elements, false), {}, all_frames(set),
                     fitting_size(set, options.batch_frames), frames.kinds.size(), model.elements);
    const std::string text = errors.json(model.elements, frames.kinds).dump(1) + "\n";
    std::cout << text;
    if (!options.json.empty()) {
        OutputFile file(options.json);
        file.write(text.data(), text.size());
        file.commit();
    }
    return 0;
}

}  // namespace

void add_evaluate(CLI::App& app, Work& work) {
    auto options = std::make_shared<EvaluateOptions>();
    CLI::App* command = app.add_subcommand("evaluate", "errors of a model on labelled frames");
    command->add_option("MODEL", options->model)->required();
    command->add_option("DATA", options->data, "extended XYZ or packed frames")->required();
    command->add_option("--split", options->split, "train, valid, test or all")->capture_default_str();
    command->add_option("--device", options->device, "auto, cpu, cuda[:i]")->capture_default_str();
    command->add_option("--batch", options->batch_frames, "frames at a time")
        ->capture_default_str()
        ->check(CLI::PositiveNumber);
    command->add_option("--json", options->json, "write the result to this file too");
    command->callback([options, &work] { work = [options] { return run_evaluate(*options); }; });
}

}  // namespace mlff::train
