// SPDX-License-Identifier: MIT
// Activation functions and their derivatives, for CPU and GPU.
#pragma once

#include <cmath>

#include "core/host_device.h"

namespace mlff {

// y = factor * f(x)
struct Activation {
    enum class Kind { identity, silu, tanh, sigmoid, absolute, relu, elu, shifted_softplus };
    Kind kind = Kind::identity;
    double factor = 1;
};

// The factor with which the mean square of f(x) is 1 for normal deviates x, as e3nn found it from a fixed sample.
constexpr double e3nn_factor(Activation::Kind kind) {
    switch (kind) {
        case Activation::Kind::silu: return 1.6791767923989418;
        case Activation::Kind::tanh: return 1.5937334472592695;
        case Activation::Kind::sigmoid: return 1.8467055342154763;
        case Activation::Kind::absolute: return 1.001110600838467;
        case Activation::Kind::relu: return 1.4163393446331365;
        case Activation::Kind::elu: return 1.2467863885570512;
        case Activation::Kind::shifted_softplus: return 1.878204668541552;
        case Activation::Kind::identity: break;
    }
    return 1;
}

MLFF_HOST_DEVICE inline double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// factor * f(x)
MLFF_HOST_DEVICE inline double activate(const Activation& activation, double x) {
    switch (activation.kind) {
        case Activation::Kind::silu: return activation.factor * x * sigmoid(x);
        case Activation::Kind::tanh: return activation.factor * std::tanh(x);
        case Activation::Kind::sigmoid: return activation.factor * sigmoid(x);
        case Activation::Kind::absolute: return activation.factor * std::abs(x);
        case Activation::Kind::relu: return activation.factor * (x > 0 ? x : 0);
        case Activation::Kind::elu: return activation.factor * (x > 0 ? x : std::expm1(x));
        case Activation::Kind::shifted_softplus:  // log((1 + exp(x)) / 2)
            return activation.factor * ((x > 0 ? x : 0) + std::log1p(std::exp(-std::abs(x))) - 0.69314718055994531);
        case Activation::Kind::identity: break;
    }
    return activation.factor * x;
}

// factor * f'(x)
MLFF_HOST_DEVICE inline double activation_slope(const Activation& activation, double x) {
    const double s = sigmoid(x);
    switch (activation.kind) {
        case Activation::Kind::silu: return activation.factor * (s + x * s * (1 - s));
        case Activation::Kind::tanh: return activation.factor * (1 - std::tanh(x) * std::tanh(x));
        case Activation::Kind::sigmoid: return activation.factor * s * (1 - s);
        case Activation::Kind::absolute: return activation.factor * (x > 0 ? 1 : x < 0 ? -1 : 0);
        case Activation::Kind::relu: return activation.factor * (x > 0 ? 1 : 0);
        case Activation::Kind::elu: return activation.factor * (x > 0 ? 1 : std::exp(x));
        case Activation::Kind::shifted_softplus: return activation.factor * s;
        case Activation::Kind::identity: break;
    }
    return activation.factor;
}

}  // namespace mlff
