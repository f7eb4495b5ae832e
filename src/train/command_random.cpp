// SPDX-License-Identifier: MIT
// mlff-train random: a model file with random weights, for tests.
#include <algorithm>
#include <memory>

#include "core/elements.h"
#include "core/error.h"
#include "train/command.h"
#include "train/model_file.h"

namespace mlff::train {
namespace {

struct RandomOptions {
    std::string path;
    ModelShape shape;
    std::vector<int> elements = {1, 6, 7, 8};
    uint64_t seed = 1;
    double bias = 0.2;
    double closest = 0;  // times the sum of covalent radii
    bool has_repulsion = true;
};

int run_random(const RandomOptions& options) {
    options.shape.check();
    StoredModel model;
    model.shape = options.shape;
    model.elements.atomic_numbers = options.elements;
    std::sort(model.elements.atomic_numbers.begin(), model.elements.atomic_numbers.end());
    for (size_t i = 0; i < model.elements.atomic_numbers.size(); ++i) {
        const int number = model.elements.atomic_numbers[i];
        if (number < 1 || number > 96 || (i > 0 && number == model.elements.atomic_numbers[i - 1]))
            fail(Status::argument, "--elements: expected distinct atomic numbers from 1 to 96");
        model.elements.atomic_energies.push_back(-13.6 * number);
        model.elements.scales.push_back(1.0 + 0.1 * static_cast<double>(i));
        if (options.has_repulsion) model.elements.repulsion_radii.push_back(covalent_radius(number));
    }
    for (const int first : model.elements.atomic_numbers)
        for (const int second : model.elements.atomic_numbers) {
            const double closest = options.closest * (covalent_radius(first) + covalent_radius(second));
            if (options.closest > 0) model.elements.closest.push_back(std::min(closest, 0.9 * options.shape.cutoff));
        }
    const ParameterLayout layout = parameter_layout(model.shape, model.elements.size());
    model.parameters = initial_parameters(model.shape, layout, options.seed);
    // Biases are random too, so that tests detect an engine that ignores one.
    const at::Tensor noise =
        initial_parameters({256, 8, 64, 5.0}, parameter_layout({256, 8, 64, 5.0}, 1), options.seed + 1);
    int64_t next = 256;
    const auto fill = [&](at::Tensor values) {
        at::Tensor source = noise.narrow(0, next, values.numel());
        values.copy_(source.sign() * options.bias * (source.abs() * 20).fmod(1.0));
        next += values.numel();
    };
    for (const ParameterSlot& slot : layout.slots) {
        const at::Tensor values = model.parameters.narrow(0, slot.offset, slot.size).view(slot.shape);
        if (slot.name.ends_with("bias")) fill(values);
        if (slot.name.ends_with("filter")) fill(values[model.shape.radial]);
    }
    model.card = {{"name", "random weights"}, {"seed", options.seed}};
    write_model(options.path, model);
    return 0;
}

}  // namespace

void add_random(CLI::App& app, Work& work) {
    auto options = std::make_shared<RandomOptions>();
    CLI::App* command = app.add_subcommand("random", "write a model with random weights, for tests");
    command->add_option("OUT", options->path)->required();
    command->add_option("--hidden", options->shape.hidden)->capture_default_str();
    command->add_option("--blocks", options->shape.blocks)->capture_default_str();
    command->add_option("--radial", options->shape.radial)->capture_default_str();
    command->add_option("--cutoff", options->shape.cutoff)->capture_default_str();
    command->add_option("--elements", options->elements, "atomic numbers")->delimiter(',')->capture_default_str();
    command->add_option("--seed", options->seed)->capture_default_str();
    command
        ->add_option("--closest", options->closest,
                     "times the sum of covalent radii, for the tensor `closest`; 0 = none")
        ->capture_default_str();
    command->add_flag("!--no-repulsion", options->has_repulsion);
    command->callback([options, &work] { work = [options] { return run_random(*options); }; });
}

}  // namespace mlff::train
