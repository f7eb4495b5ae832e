// SPDX-License-Identifier: MIT
#include "train/loss.h"

#include <cmath>

#include "core/error.h"

namespace mlff::train {
namespace {

// As sum_of, of vectors [atoms][3], with a weight for each atom.
at::Tensor weighted_sum_of(Measure measure, const at::Tensor& found, const at::Tensor& label, const at::Tensor& weight,
                           double delta) {
    switch (measure) {
        case Measure::squared: return (at::mse_loss(found, label, at::Reduction::None) * weight).sum();
        case Measure::absolute: return (at::l1_loss(found, label, at::Reduction::None) * weight).sum();
        case Measure::huber:
            return (at::huber_loss(found, label, at::Reduction::None, delta) * weight).sum().mul(1 / delta);
        case Measure::length: break;
    }
    return ((found - label).square().sum(1, /*keepdim=*/true).add(1e-12).sqrt() * weight).sum();
}

at::Tensor sum_of(Measure measure, const at::Tensor& found, const at::Tensor& label, double delta) {
    switch (measure) {
        case Measure::squared: return at::mse_loss(found, label, at::Reduction::Sum);
        case Measure::absolute: return at::l1_loss(found, label, at::Reduction::Sum);
        case Measure::huber: return at::huber_loss(found, label, at::Reduction::Sum, delta).mul(1 / delta);
        case Measure::length: break;
    }
    return (found - label).square().sum(1).add(1e-12).sqrt().sum();
}

}  // namespace

Measure measure_of_text(const std::string& text) {
    if (text == "mse") return Measure::squared;
    if (text == "l1") return Measure::absolute;
    if (text == "huber") return Measure::huber;
    if (text == "norm") return Measure::length;
    fail(Status::argument, "a loss is mse, l1, huber or norm, not '", text, "'");
}

ForceWeighting force_weighting_of_text(const std::string& text) {
    if (text == "atoms") return ForceWeighting::atoms;
    if (text == "root") return ForceWeighting::root;
    if (text == "frames") return ForceWeighting::frames;
    fail(Status::argument, "a weighting of forces is atoms, root or frames, not '", text, "'");
}

double force_weight_of_atom(ForceWeighting weighting, int64_t atoms_of_frame) {
    const auto atoms = static_cast<double>(atoms_of_frame);
    switch (weighting) {
        case ForceWeighting::atoms: break;
        case ForceWeighting::root: return 1 / std::sqrt(atoms);
        case ForceWeighting::frames: return 1 / atoms;
    }
    return 1;
}

Prediction predict(const Parameters& parameters, const Batch& batch, bool differentiable) {
    const EnergyAndGradient result = energy_and_gradient(parameters, batch.graph, differentiable);
    Prediction prediction;
    prediction.energy = at::zeros_like(batch.energy).index_add(0, batch.frame_of_atom, result.atom_energy);
    prediction.force = forces_of(result.edge_gradient, batch.graph);
    if (batch.stress.defined()) {
        const at::Tensor virial = (batch.edge_vector.unsqueeze(2) * result.edge_gradient.unsqueeze(1)).view({-1, 9});
        const at::Tensor frame_of_edge = batch.frame_of_atom.index_select(0, batch.graph.lists.receiver);
        prediction.stress = at::zeros_like(batch.stress).index_add(0, frame_of_edge, virial) * batch.per_volume;
    }
    return prediction;
}

LossSums loss_sums(const LossRule& rule, const Batch& batch, const Prediction& prediction) {
    LossSums sums;
    sums.energy =
        sum_of(rule.energy, prediction.energy * batch.per_atom, batch.energy * batch.per_atom, rule.energy_delta);
    if (rule.weighting == ForceWeighting::atoms) {
        sums.force = sum_of(rule.force, prediction.force, batch.force, rule.force_delta);
    } else {
        at::Tensor weight = batch.per_atom.index_select(0, batch.frame_of_atom);  // 1 for padding, which has no error
        if (rule.weighting == ForceWeighting::root) weight = weight.sqrt();
        sums.force = weighted_sum_of(rule.force, prediction.force, batch.force, weight, rule.force_delta);
    }
    if (prediction.stress.defined()) sums.stress = at::mse_loss(prediction.stress, batch.stress, at::Reduction::Sum);
    return sums;
}

double measured(Measure measure, double difference, double delta) {
    const double size = std::abs(difference);
    switch (measure) {
        case Measure::squared: return size * size;
        case Measure::huber: return size < delta ? 0.5 * size * size / delta : size - 0.5 * delta;
        case Measure::absolute:
        case Measure::length: break;
    }
    return size;
}

}  // namespace mlff::train
