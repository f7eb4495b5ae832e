// SPDX-License-Identifier: MIT
// AdamW, gradient clipping by norm, and the moving average of the weights. Acts on all parameters as one vector, with
// about a dozen kernels in total.
#pragma once

#include "train/model.h"

namespace mlff::train {

struct OptimizerRule {
    double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
    double weight_decay = 1e-4;
    double largest_norm = 10;  // of the gradient; 0 = any
};

// Numbers that change from step to step. They are on the device, so that a recorded step can be replayed with new
// values.
struct StepControls {
    static constexpr int64_t kCount = 7;
    double learning_rate = 0, inverse_bias1 = 1, inverse_bias2 = 1, ema_weight = 1;
    double energy_factor = 0, force_factor = 0, stress_factor = 0;  // of the loss sums
    void write(float* values) const;
};
struct DeviceControls {
    explicit DeviceControls(const at::Tensor& buffer);  // float [kCount]
    at::Tensor learning_rate, inverse_bias1, inverse_bias2, ema_weight, energy_factor, force_factor,
        stress_factor;  // scalars
};

class Optimizer {
public:
    Optimizer(const OptimizerRule& rule, const ParameterLayout& layout, at::Tensor parameters);

    // Returns the norm of the gradient, a scalar on the device. A non-finite gradient counts as zero.
    at::Tensor step(const std::vector<at::Tensor>& gradients, const DeviceControls& controls);

    at::Tensor parameters, average, first_moment, second_moment;  // [total]

private:
    OptimizerRule rule_;
    at::Tensor decay_;  // [total]: weight decay of each parameter
};

}  // namespace mlff::train
