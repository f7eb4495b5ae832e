// SPDX-License-Identifier: MIT
#include "train/optimizer.h"

namespace mlff::train {

void StepControls::write(float* values) const {
    const double all[kCount] = {learning_rate, inverse_bias1, inverse_bias2, ema_weight,
                                energy_factor, force_factor,  stress_factor};
    for (int64_t i = 0; i < kCount; ++i) values[i] = static_cast<float>(all[i]);
}

DeviceControls::DeviceControls(const at::Tensor& buffer)
    : learning_rate(buffer[0]),
      inverse_bias1(buffer[1]),
      inverse_bias2(buffer[2]),
      ema_weight(buffer[3]),
      energy_factor(buffer[4]),
      force_factor(buffer[5]),
      stress_factor(buffer[6]) {}

Optimizer::Optimizer(const OptimizerRule& rule, const ParameterLayout& layout, at::Tensor initial)
    : parameters(std::move(initial)),
      average(parameters.clone()),
      first_moment(at::zeros_like(parameters)),
      second_moment(at::zeros_like(parameters)),
      rule_(rule) {
    at::Tensor decay = at::zeros({layout.total}, at::kFloat);
    for (const ParameterSlot& slot : layout.slots)
        if (slot.decays) decay.narrow(0, slot.offset, slot.size).fill_(rule.weight_decay);
    decay_ = decay.to(parameters.device());
}

at::Tensor Optimizer::step(const std::vector<at::Tensor>& gradients, const DeviceControls& controls) {
    const at::NoGradGuard no_grad;
    std::vector<at::Tensor> flat;
    flat.reserve(gradients.size());
    for (const at::Tensor& gradient : gradients) flat.push_back(gradient.reshape(-1));
    at::Tensor gradient = at::cat(flat);
    const at::Tensor norm = at::linalg_vector_norm(gradient);
    if (rule_.largest_norm > 0) {
        // min(1, limit / norm); 0 for NaN or infinity
        const at::Tensor factor = norm.reciprocal().mul_(rule_.largest_norm).clamp_max_(1).nan_to_num_(0.0);
        gradient.nan_to_num_(0.0, 0.0, 0.0).mul_(factor);
    }
    first_moment.lerp_(gradient, 1 - rule_.beta1);
    second_moment.mul_(rule_.beta2).addcmul_(gradient, gradient, 1 - rule_.beta2);
    const at::Tensor root = (second_moment * controls.inverse_bias2).sqrt_().add_(rule_.epsilon);
    at::Tensor change = (first_moment * controls.inverse_bias1).div_(root);
    change.addcmul_(parameters, decay_);
    parameters.addcmul_(change, controls.learning_rate, -1);
    average.lerp_(parameters, controls.ema_weight);
    return norm;
}

}  // namespace mlff::train
