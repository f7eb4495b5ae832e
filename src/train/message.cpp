// SPDX-License-Identifier: MIT
#include "train/message.h"

#include "train/fused_message.h"

namespace mlff::train {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

// Part 0, 1, 2 (s, v, u) of [edges][3F].
Tensor part(const Tensor& parts, int64_t index) {
    const int64_t width = parts.size(1) / 3;
    return parts.narrow(1, index * width, width);
}
Tensor along_xyz(const Tensor& x) { return x.unsqueeze(1); }       // [edges][F] -> [edges][1][F]
Tensor along_channels(const Tensor& u) { return u.unsqueeze(2); }  // [edges][3] -> [edges][3][1]
Tensor gather(const Tensor& rows, const Tensor& index) { return rows.index_select(0, index); }
Tensor scatter(const Tensor& edges, const Tensor& index, int64_t atoms) {
    std::vector<int64_t> shape = edges.sizes().vec();
    shape[0] = atoms;
    return at::zeros(shape, edges.options()).index_add_(0, index, edges);
}

// Below: a = phi[sender], y = v[sender], x = a filter; gs, gv = dL/d(scalars), dL/d(vectors); bs, bv = gs, gv at the
// receiver.
//   gx_s = bs,  gx_v = sum over xyz of bv y,  gx_u = sum over xyz of bv u
//   dL/dphi = sum over edges of gx filter,  dL/dfilter = gx a
//   dL/dv = sum over edges of bv x_v,  dL/du = sum over channels of bv x_u
struct MessageGradient : Function<MessageGradient> {
    static variable_list forward(AutogradContext* context, const Tensor& phi, const Tensor& filter, const Tensor& v,
                                 const Tensor& u, const Tensor& gs, const Tensor& gv, const Tensor& sender,
                                 const Tensor& receiver, const Tensor& a, const Tensor& x, const Tensor& y,
                                 bool wants_direction) {
        context->set_materialize_grads(false);
        const bool has_vectors = v.numel() > 0;
        const int64_t atoms = phi.size(0);
        const Tensor bv = gather(gv, receiver);
        Tensor gx = at::empty_like(x);
        part(gx, 0).copy_(gather(gs, receiver));
        if (has_vectors) {
            Tensor gx_v = part(gx, 1);
            at::sum_out(gx_v, bv * y, at::IntArrayRef{1});
        } else {
            part(gx, 1).zero_();
        }
        Tensor gx_u = part(gx, 2);
        at::sum_out(gx_u, bv * along_channels(u), at::IntArrayRef{1});
        const Tensor gradient_of_phi = scatter(gx * filter, sender, atoms);
        const Tensor gradient_of_v =
            has_vectors ? scatter(bv * along_xyz(part(x, 1)), sender, atoms) : at::empty({0}, v.options());
        const Tensor gradient_of_u =
            wants_direction ? (bv * along_xyz(part(x, 2))).sum(2) : at::empty({0}, u.options());
        context->save_for_backward({filter, u, sender, receiver, a, x, y, bv, gx});
        context->saved_data["atoms"] = atoms;
        return {gradient_of_phi, gx * a, gradient_of_v, gradient_of_u};
    }

    // Cotangents c of the four results: at the sender ca, cy; for filter and u cw, cu. With p = ca filter + cw a:
    //   L = gx . p + sum of bv (cy x_v + cu x_u)
    static variable_list backward(AutogradContext* context, variable_list outer) {
        const at::NoGradGuard no_grad;
        const auto saved = context->get_saved_variables();
        const Tensor &filter = saved[0], &u = saved[1], &sender = saved[2], &receiver = saved[3], &a = saved[4],
                     &x = saved[5], &y = saved[6], &bv = saved[7], &gx = saved[8];
        const int64_t atoms = context->saved_data["atoms"].toInt();
        const bool has_vectors = y.numel() > 0;
        const Tensor &of_phi = outer[0], &cw = outer[1], &of_v = outer[2], &cu = outer[3];
        const Tensor ca = of_phi.defined() ? gather(of_phi, sender) : at::zeros_like(x);
        const Tensor cy = has_vectors && of_v.defined() ? gather(of_v, sender) : Tensor();

        Tensor p = ca * filter;
        if (cw.defined()) p.addcmul_(cw, a);
        Tensor of_bv = along_xyz(part(p, 2)) * along_channels(u);
        if (has_vectors) of_bv.addcmul_(along_xyz(part(p, 1)), y);
        if (cy.defined()) of_bv.addcmul_(cy, along_xyz(part(x, 1)));
        if (cu.defined()) of_bv.addcmul_(along_channels(cu), along_xyz(part(x, 2)));

        Tensor of_a = cw.defined() ? cw * gx : at::zeros_like(x), of_filter = ca * gx;
        const auto add_of_x = [&](int64_t index, const Tensor& of_x) {
            part(of_a, index).addcmul_(of_x, part(filter, index));
            part(of_filter, index).addcmul_(of_x, part(a, index));
        };
        if (cy.defined()) add_of_x(1, (bv * cy).sum(1));
        if (cu.defined()) add_of_x(2, (bv * along_channels(cu)).sum(1));
        const Tensor gradient_of_v = has_vectors ? scatter(bv * along_xyz(part(p, 1)), sender, atoms) : Tensor();
        return {scatter(of_a, sender, atoms),
                of_filter,
                gradient_of_v,
                Tensor(),
                scatter(part(p, 0), receiver, atoms),
                scatter(of_bv, receiver, atoms),
                Tensor(),
                Tensor(),
                Tensor(),
                Tensor(),
                Tensor(),
                Tensor()};
    }
};

struct Message : Function<Message> {
    static variable_list forward(AutogradContext* context, const Tensor& phi, const Tensor& filter, const Tensor& v,
                                 const Tensor& u, const Tensor& sender, const Tensor& receiver) {
        const bool has_vectors = v.numel() > 0;
        const Tensor a = gather(phi, sender);
        const Tensor x = a * filter;
        const Tensor y = has_vectors ? gather(v, sender) : v;
        Tensor message = along_xyz(part(x, 2)) * along_channels(u);
        if (has_vectors) message.addcmul_(along_xyz(part(x, 1)), y);
        context->save_for_backward({phi, filter, v, u, sender, receiver, a, x, y});
        return {scatter(part(x, 0), receiver, phi.size(0)), scatter(message, receiver, phi.size(0))};
    }
    static variable_list backward(AutogradContext* context, variable_list outer) {
        const auto saved = context->get_saved_variables();
        const bool wants_direction = context->needs_input_grad(3);
        variable_list found = MessageGradient::apply(saved[0], saved[1], saved[2], saved[3], outer[0], outer[1],
                                                     saved[4], saved[5], saved[6], saved[7], saved[8], wants_direction);
        return {found[0], found[1], saved[2].numel() > 0 ? found[2] : Tensor(), wants_direction ? found[3] : Tensor(),
                Tensor(), Tensor()};
    }
};

}  // namespace

NodeSums sum_messages(const Tensor& phi, const Tensor& filter, const Tensor& v, const Tensor& u,
                      const EdgeLists& lists) {
    if (lists.uses_kernels) return fused_sum_messages(phi, filter, v, u, lists);
    const variable_list sums =
        Message::apply(phi, filter, v.defined() ? v : at::empty({0}, phi.options()), u, lists.sender, lists.receiver);
    return {sums[0], sums[1]};
}

}  // namespace mlff::train
