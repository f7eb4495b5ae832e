// SPDX-License-Identifier: MIT
#include "train/smooth_ops.h"

namespace mlff::train {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

// silu''(x) = s (1 - s) (2 + x (1 - 2 s)),  s = sigmoid(x)
at::Tensor second_derivative_of_silu(const at::Tensor& x) {
    const at::Tensor s = at::sigmoid(x);
    at::Tensor bracket = at::addcmul(x, x, s, -2).add_(2);  // 2 + x - 2 x s
    return bracket.mul_(s).mul_(s.neg_().add_(1));
}

// g silu'(x)
struct SiluSlope : Function<SiluSlope> {
    static at::Tensor forward(AutogradContext* context, const at::Tensor& g, const at::Tensor& x) {
        context->save_for_backward({g, x});
        return at::silu_backward(g, x);
    }
    // Third derivatives are never needed, so the result need not be differentiable.
    static variable_list backward(AutogradContext* context, variable_list outer) {
        const at::NoGradGuard no_grad;
        const auto saved = context->get_saved_variables();
        const at::Tensor &g = saved[0], &x = saved[1];
        return {at::silu_backward(outer[0].contiguous(), x), second_derivative_of_silu(x).mul_(g).mul_(outer[0])};
    }
};

struct Silu : Function<Silu> {
    static at::Tensor forward(AutogradContext* context, const at::Tensor& x) {
        context->save_for_backward({x});
        return at::silu(x);
    }
    static variable_list backward(AutogradContext* context, variable_list outer) {
        const at::Tensor x = context->get_saved_variables()[0];
        return {SiluSlope::apply(outer[0].contiguous(), x)};
    }
};

struct MultiplyAdd : Function<MultiplyAdd> {
    static at::Tensor forward(AutogradContext* context, const at::Tensor& sum, const at::Tensor& a,
                              const at::Tensor& b) {
        context->save_for_backward({a, b});
        return at::addcmul(sum, a, b);
    }
    static variable_list backward(AutogradContext* context, variable_list outer) {
        const auto saved = context->get_saved_variables();
        const at::Tensor &a = saved[0], &b = saved[1], &g = outer[0];
        return {g, context->needs_input_grad(1) ? (g * b).sum_to_size(a.sizes()) : at::Tensor(),
                context->needs_input_grad(2) ? (g * a).sum_to_size(b.sizes()) : at::Tensor()};
    }
};

}  // namespace

at::Tensor silu(const at::Tensor& x) { return Silu::apply(x); }
at::Tensor multiply_add(const at::Tensor& sum, const at::Tensor& a, const at::Tensor& b) {
    return MultiplyAdd::apply(sum, a, b);
}

}  // namespace mlff::train
