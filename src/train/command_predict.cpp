// SPDX-License-Identifier: MIT
// mlff-train predict: energies, forces and stresses in the format of `mlff eval --json`, for comparison.
#include <iostream>
#include <memory>

#include "core/elements.h"
#include "core/output_file.h"
#include "formats/extxyz.h"
#include "train/command.h"
#include "train/device_choice.h"
#include "train/frame_graph.h"
#include "train/model_file.h"
#include "train/training_set.h"

namespace mlff::train {
namespace {

using Json = nlohmann::json;

struct PredictOptions {
    std::string model, frames, json = "-", device = "cpu";
    bool fp64 = false;
};

class Predictor {
public:
    Predictor(const StoredModel& model, const at::TensorOptions& options)
        : model_(model),
          options_(options),
          parameters_(model.shape, parameter_layout(model.shape, model.elements.size()), model.parameters.to(options),
                      false),
          functions_(model.shape, model.elements, options),
          maker_(model.shape.cutoff) {}

    Json operator()(const Frame& frame) {
        const SystemView system = frame.view();
        const FrameGraph edges = maker_.make(system);
        AtomGraph graph;
        graph.lists.sender = index_tensor(edges.sender);
        graph.lists.receiver = index_tensor(edges.receiver);
        at::Tensor one_hot = at::zeros({system.atom_count, model_.elements.size()}, at::kDouble),
                   scale = at::zeros({system.atom_count, 1}, at::kDouble);
        std::vector<double> atom_energies;
        for (int64_t atom = 0; atom < system.atom_count; ++atom) {
            const int element = model_.elements.index_of(system.atomic_numbers[atom]);
            if (element < 0)
                fail(Status::unsupported, "the model does not know the element ",
                     element_symbol(system.atomic_numbers[atom]));
            one_hot[atom][element] = 1;
            scale[atom][0] = model_.elements.scales[static_cast<size_t>(element)];
            atom_energies.push_back(model_.elements.atomic_energies[static_cast<size_t>(element)]);
        }
        graph.element_one_hot = one_hot.to(options_);
        graph.scale = scale.to(options_);
        const at::Tensor vectors = at::tensor(edges.vectors, at::kDouble).view({-1, 3});
        functions_.compute(vectors.to(options_), graph);
        const EnergyAndGradient found = energy_and_gradient(parameters_, graph, false);
        const at::Tensor gradient = found.edge_gradient.detach().to(at::kCPU, at::kDouble);
        const at::Tensor forces = forces_of(found.edge_gradient.detach(), graph).to(at::kCPU, at::kDouble).contiguous();
        const at::Tensor network_energies = found.atom_energy.detach().to(at::kCPU, at::kDouble).contiguous();
        const at::Tensor virial = at::mm(vectors.t(), gradient).contiguous();

        const FrameRepulsion repulsion =
            frame_repulsion(system, edges, radii_of_atoms(model_.elements, frame.atomic_numbers));
        double energy = 0;
        Json force_rows = Json::array();
        for (int64_t atom = 0; atom < system.atom_count; ++atom) {
            const auto a = static_cast<size_t>(atom);
            atom_energies[a] += network_energies.data_ptr<double>()[atom] + repulsion.atom_energies[a];
            energy += atom_energies[a];
            const double* f = forces.data_ptr<double>() + 3 * atom;
            force_rows.push_back({f[0] + repulsion.forces[3 * a], f[1] + repulsion.forces[3 * a + 1],
                                  f[2] + repulsion.forces[3 * a + 2]});
        }
        Json stress;
        const double volume = volume_of(system.cell);
        if (system.is_periodic() && volume > 0) {
            const auto at = [&](size_t i, size_t j) {
                const double sum = virial.data_ptr<double>()[3 * i + j] + virial.data_ptr<double>()[3 * j + i];
                return 0.5 * (sum + repulsion.virial[3 * i + j] + repulsion.virial[3 * j + i]) / volume;
            };
            stress = {at(0, 0), at(1, 1), at(2, 2), at(1, 2), at(0, 2), at(0, 1)};
        }
        return {{"atoms", system.atom_count},
                {"energy", energy},
                {"forces", force_rows},
                {"stress", stress},
                {"atom_energies", atom_energies}};
    }

private:
    at::Tensor index_tensor(const std::vector<int32_t>& values) const {
        return at::tensor(std::vector<int64_t>(values.begin(), values.end()), at::kLong).to(options_.device());
    }
    const StoredModel& model_;
    at::TensorOptions options_;
    Parameters parameters_;
    EdgeFunctions functions_;
    GraphMaker maker_;
};

int run_predict(const PredictOptions& options) {
    const StoredModel model = read_model(options.model);
    const at::Device device = device_of_text(options.device);
    Predictor predictor(model, at::TensorOptions().device(device).dtype(options.fp64 ? at::kDouble : at::kFloat));
    Json result = {{"model", options.model},
                   {"device", device.str()},
                   {"precision", options.fp64 ? "fp64" : "fp32"},
                   {"frames", Json::array()}};
    for (const Frame& frame : read_extxyz(options.frames)) result["frames"].push_back(predictor(frame));
    const std::string text = result.dump() + "\n";
    if (options.json == "-") {
        std::cout << text;
        return 0;
    }
    OutputFile file(options.json);
    file.write(text.data(), text.size());
    file.commit();
    return 0;
}

}  // namespace

void add_predict(CLI::App& app, Work& work) {
    auto options = std::make_shared<PredictOptions>();
    CLI::App* command =
        app.add_subcommand("predict", "energies, forces and stresses as JSON, as mlff eval --json writes them");
    command->add_option("MODEL", options->model)->required();
    command->add_option("FRAMES", options->frames, "extended XYZ")->required();
    command->add_option("--json", options->json, "'-' = standard output")->capture_default_str();
    command->add_option("--device", options->device, "auto, cpu, cuda[:i]")->capture_default_str();
    command->add_flag("--fp64", options->fp64, "compute in double precision");
    command->callback([options, &work] { work = [options] { return run_predict(*options); }; });
}

}  // namespace mlff::train
