// SPDX-License-Identifier: MIT
#include "train/fused_message.h"

#include "train/message_kernels.h"

#if MLFF_TRAIN_CUDA_KERNELS
#include <c10/cuda/CUDAStream.h>
#endif

namespace mlff::train {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

void run(MessageStage stage, const MessageEdges& edges, const MessageArrays& arrays, bool on_gpu) {
#if MLFF_TRAIN_CUDA_KERNELS
    if (on_gpu) return run_message_stage_cuda(stage, edges, arrays, c10::cuda::getCurrentCUDAStream().stream());
#endif
    TORCH_CHECK(!on_gpu, "this build has no message kernels for the GPU");
    run_message_stage_cpu(stage, edges, arrays);
}

const float* data_of(const Tensor& tensor) { return tensor.numel() > 0 ? tensor.const_data_ptr<float>() : nullptr; }
float* room_of(const Tensor& tensor) { return tensor.numel() > 0 ? tensor.mutable_data_ptr<float>() : nullptr; }
Tensor or_zeros(const Tensor& tensor, const Tensor& like) {
    return tensor.defined() ? tensor.contiguous() : at::zeros_like(like);
}

MessageEdges edges_of(const Tensor& phi, const Tensor& u, const Tensor& sender, const Tensor& first,
                      const Tensor& reverse) {
    MessageEdges edges;
    edges.atoms = phi.size(0);
    edges.edges = u.size(0);
    edges.channels = phi.size(1) / 3;
    edges.first = first.const_data_ptr<int64_t>();
    edges.sender = sender.const_data_ptr<int64_t>();
    edges.reverse = reverse.const_data_ptr<int64_t>();
    edges.direction = u.const_data_ptr<float>();
    return edges;
}

struct FusedGradient : Function<FusedGradient> {
    static variable_list forward(AutogradContext* context, const Tensor& phi, const Tensor& filter, const Tensor& v,
                                 const Tensor& u, const Tensor& given_gs, const Tensor& given_gv, const Tensor& sender,
                                 const Tensor& first, const Tensor& reverse, bool wants_direction) {
        context->set_materialize_grads(false);
        const MessageEdges edges = edges_of(phi, u, sender, first, reverse);
        const Tensor gs = given_gs.contiguous(), gv = given_gv.contiguous();
        const Tensor grad_phi = at::empty_like(phi), grad_filter = at::empty_like(filter), grad_v = at::empty_like(v);
        const Tensor parts = at::empty({wants_direction ? edges.channels / 32 : 0, edges.edges, 3}, u.options());
        MessageArrays arrays;
        arrays.phi = data_of(phi);
        arrays.filter = data_of(filter);
        arrays.v = data_of(v);
        arrays.gs = data_of(gs);
        arrays.gv = data_of(gv);
        arrays.grad_phi = room_of(grad_phi);
        arrays.grad_filter = room_of(grad_filter);
        arrays.grad_v = room_of(grad_v);
        arrays.grad_direction = room_of(parts);
        run(MessageStage::gradient, edges, arrays, phi.is_cuda());
        context->save_for_backward({phi, filter, v, u, gs, gv, sender, first, reverse});
        return {grad_phi, grad_filter, grad_v, parts.sum(0)};
    }

    static variable_list backward(AutogradContext* context, variable_list outer) {
        const at::NoGradGuard no_grad;
        const auto saved = context->get_saved_variables();
        const Tensor &phi = saved[0], &filter = saved[1], &v = saved[2], &u = saved[3], &gs = saved[4], &gv = saved[5];
        const MessageEdges edges = edges_of(phi, u, saved[6], saved[7], saved[8]);
        const Tensor of_phi = or_zeros(outer[0], phi), cw = or_zeros(outer[1], filter), of_v = or_zeros(outer[2], v),
                     cu = or_zeros(outer[3], u);
        const Tensor grad_phi = at::empty_like(phi), grad_filter = at::empty_like(filter), grad_v = at::empty_like(v);
        const Tensor grad_gs = at::empty_like(gs), grad_gv = at::empty_like(gv);
        MessageArrays arrays;
        arrays.phi = data_of(phi);
        arrays.filter = data_of(filter);
        arrays.v = data_of(v);
        arrays.gs = data_of(gs);
        arrays.gv = data_of(gv);
        arrays.of_phi = data_of(of_phi);
        arrays.cw = data_of(cw);
        arrays.of_v = data_of(of_v);
        arrays.cu = data_of(cu);
        MessageArrays by_receiver = arrays;
        arrays.grad_phi = room_of(grad_phi);
        arrays.grad_filter = room_of(grad_filter);
        arrays.grad_v = room_of(grad_v);
        by_receiver.scalars = room_of(grad_gs);
        by_receiver.vectors = room_of(grad_gv);
        run(MessageStage::second_by_sender, edges, arrays, phi.is_cuda());
        run(MessageStage::second_by_receiver, edges, by_receiver, phi.is_cuda());
        return {
            grad_phi, grad_filter, v.numel() > 0 ? grad_v : Tensor(), Tensor(), grad_gs, grad_gv, Tensor(), Tensor(),
            Tensor(), Tensor()};
    }
};

struct FusedMessage : Function<FusedMessage> {
    static variable_list forward(AutogradContext* context, const Tensor& given_phi, const Tensor& given_filter,
                                 const Tensor& given_v, const Tensor& u, const Tensor& sender, const Tensor& first,
                                 const Tensor& reverse) {
        const Tensor phi = given_phi.contiguous(), filter = given_filter.contiguous(), v = given_v.contiguous();
        const MessageEdges edges = edges_of(phi, u, sender, first, reverse);
        const Tensor scalars = at::empty({edges.atoms, edges.channels}, phi.options()),
                     vectors = at::empty({edges.atoms, 3, edges.channels}, phi.options());
        MessageArrays arrays;
        arrays.phi = data_of(phi);
        arrays.filter = data_of(filter);
        arrays.v = data_of(v);
        arrays.scalars = room_of(scalars);
        arrays.vectors = room_of(vectors);
        run(MessageStage::sums, edges, arrays, phi.is_cuda());
        context->save_for_backward({given_phi, given_filter, given_v, u, sender, first, reverse});
        return {scalars, vectors};
    }
    static variable_list backward(AutogradContext* context, variable_list outer) {
        const auto saved = context->get_saved_variables();
        const bool wants_direction = context->needs_input_grad(3);
        const variable_list found =
            FusedGradient::apply(saved[0].contiguous(), saved[1].contiguous(), saved[2].contiguous(), saved[3],
                                 outer[0], outer[1], saved[4], saved[5], saved[6], wants_direction);
        return {found[0],
                found[1],
                saved[2].numel() > 0 ? found[2] : Tensor(),
                wants_direction ? found[3] : Tensor(),
                Tensor(),
                Tensor(),
                Tensor()};
    }
};

}  // namespace

NodeSums fused_sum_messages(const Tensor& phi, const Tensor& filter, const Tensor& v, const Tensor& u,
                            const EdgeLists& lists) {
    const variable_list sums = FusedMessage::apply(phi, filter, v.defined() ? v : at::empty({0}, phi.options()), u,
                                                   lists.sender, lists.first, lists.reverse);
    return {sums[0], sums[1]};
}

}  // namespace mlff::train
