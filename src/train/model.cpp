// SPDX-License-Identifier: MIT
#include "train/model.h"

#include <cmath>
#include <numbers>
#include <random>

#include "core/error.h"
#include "train/smooth_ops.h"

namespace mlff::train {
namespace {

constexpr double kNormFloor = 1e-8;  // under the square root of the norms of V v

at::Tensor apply(const Parameters::Linear& linear, const at::Tensor& x) {
    return at::addmm(linear.bias, x, linear.weight);
}

at::Tensor two_layers(const Parameters::Linear& hidden, const Parameters::Linear& output, const at::Tensor& x) {
    return apply(output, train::silu(apply(hidden, x)));
}

struct NodeState {
    at::Tensor scalars;  // [atoms][F]
    at::Tensor vectors;  // [atoms][3][F]; undefined (zero) before the first block
};

// s_i += sum of x_s,  v_i += sum of (x_v v_j + x_u u)
NodeState add_messages(const Parameters::Block& block, const AtomGraph& graph, const NodeState& node) {
    const at::Tensor phi = two_layers(block.message_hidden, block.message_output, node.scalars);
    const NodeSums sums =
        sum_messages(phi, at::mm(graph.features, block.filter), node.vectors, graph.direction, graph.lists);
    return {node.scalars + sums.scalars, node.vectors.defined() ? node.vectors + sums.vectors : sums.vectors};
}

// s_i += a_ss + a_sv (U v . V v),  v_i += a_vv (U v). The vectors of the last block are not needed.
NodeState update(const Parameters::Block& block, const NodeState& node, bool is_last) {
    const int64_t atoms = node.scalars.size(0), hidden = node.scalars.size(1);
    const at::Tensor mixed = at::mm(node.vectors.view({3 * atoms, hidden}), block.mix).view({atoms, 3, 2, hidden});
    const auto u_and_v = mixed.unbind(2);
    const auto products = (mixed * u_and_v[1].unsqueeze(2)).sum(1).unbind(1);  // (U v . V v), |V v|^2
    const at::Tensor norm = (products[1] + kNormFloor).sqrt();
    const auto a =
        two_layers(block.update_hidden, block.update_output, at::cat({node.scalars, norm}, 1)).split(hidden, 1);
    NodeState next;
    next.scalars = multiply_add(node.scalars + a[0], a[1], products[0]);
    if (!is_last) next.vectors = multiply_add(node.vectors, a[2].unsqueeze(1), u_and_v[0]);
    return next;
}

}  // namespace

void ModelShape::check() const {
    if (hidden < 32 || hidden > 256 || hidden % 32 != 0)
        fail(Status::argument, "hidden must be a multiple of 32 from 32 to 256, not ", hidden);
    if (blocks < 1 || blocks > 8) fail(Status::argument, "blocks must be 1 to 8, not ", blocks);
    if (radial < 1 || radial > 64) fail(Status::argument, "radial must be 1 to 64, not ", radial);
    if (!(cutoff > 0.5 && cutoff < 20))
        fail(Status::argument, "the cutoff must be between 0.5 and 20 angstrom, not ", cutoff);
}

int ElementTable::index_of(int atomic_number) const {
    for (size_t index = 0; index < atomic_numbers.size(); ++index)
        if (atomic_numbers[index] == atomic_number) return static_cast<int>(index);
    return -1;
}

ParameterLayout parameter_layout(const ModelShape& shape, int64_t element_count) {
    ParameterLayout layout;
    const auto add = [&](const std::string& name, std::vector<int64_t> sizes) {
        int64_t size = 1;
        for (const int64_t extent : sizes) size *= extent;
        layout.slots.push_back({name, sizes, layout.total, size, sizes.size() == 2 && name != "embedding"});
        layout.total += size;
    };
    const auto add_linear = [&](const std::string& name, int64_t in, int64_t out) {
        add(name + ".weight", {in, out});
        add(name + ".bias", {out});
    };
    const int64_t f = shape.hidden;
    add("embedding", {element_count, f});
    for (int64_t b = 0; b < shape.blocks; ++b) {
        const std::string block = "blocks." + std::to_string(b) + ".";
        add(block + "filter", {shape.feature_count(), 3 * f});
        add_linear(block + "message.hidden", f, f);
        add_linear(block + "message.output", f, 3 * f);
        add(block + "update.mix.weight", {f, 2 * f});
        add_linear(block + "update.hidden", 2 * f, f);
        add_linear(block + "update.output", f, 3 * f);
    }
    add_linear("readout.hidden", f, f / 2);
    add_linear("readout.output", f / 2, 1);
    return layout;
}

Parameters::Parameters(const ModelShape& shape, const ParameterLayout& layout, const at::Tensor& buffer,
                       bool trainable) {
    for (const ParameterSlot& slot : layout.slots) {
        at::Tensor view = buffer.narrow(0, slot.offset, slot.size).view(slot.shape).detach();
        all.push_back(view.requires_grad_(trainable));
    }
    size_t next = 0;
    const auto linear = [&] {
        next += 2;
        return Linear{all[next - 2], all[next - 1]};
    };
    embedding = all[next++];
    for (int64_t b = 0; b < shape.blocks; ++b) {
        Block block;
        block.filter = all[next++];
        block.message_hidden = linear();
        block.message_output = linear();
        block.mix = all[next++];
        block.update_hidden = linear();
        block.update_output = linear();
        blocks.push_back(block);
    }
    readout_hidden = linear();
    readout_output = linear();
}

at::Tensor initial_parameters(const ModelShape& shape, const ParameterLayout& layout, uint64_t seed) {
    // Uses our own random numbers, so that a seed gives the same on every machine and torch version.
    std::mt19937_64 bits(seed);
    const auto uniform = [&] { return (static_cast<double>(bits() >> 11) + 0.5) * 0x1p-53; };
    const auto normal = [&] {
        return std::sqrt(-2 * std::log(uniform())) * std::cos(2 * std::numbers::pi * uniform());
    };
    at::Tensor buffer = at::zeros({layout.total}, at::kFloat);
    auto* values = buffer.data_ptr<float>();
    for (const ParameterSlot& slot : layout.slots) {
        float* first = values + slot.offset;
        if (slot.name == "embedding") {
            for (int64_t i = 0; i < slot.size; ++i) first[i] = static_cast<float>(normal());
        } else if (slot.shape.size() == 2) {
            const bool is_filter = slot.name.ends_with("filter");
            const int64_t in = is_filter ? shape.radial : slot.shape[0];  // the remaining rows are a bias and padding
            const double bound = std::sqrt(6.0 / static_cast<double>(in + slot.shape[1]));
            for (int64_t i = 0; i < in * slot.shape[1]; ++i) first[i] = static_cast<float>((2 * uniform() - 1) * bound);
        }
    }
    return buffer;
}

EdgeFunctions::EdgeFunctions(const ModelShape& shape, const ElementTable& elements, const at::TensorOptions& options)
    : cutoff_(shape.cutoff) {
    // Column n: sin(frequency d + phase) (over_distance / d + constant) fade
    const int64_t columns = shape.feature_count();
    const auto row = [&] { return at::zeros({1, columns}, at::kDouble); };
    at::Tensor frequency = row(), phase = row(), over_distance = row(), constant = row();
    for (int64_t n = 0; n < shape.radial; ++n) {
        frequency[0][n] = static_cast<double>(n + 1) * std::numbers::pi / cutoff_;
        over_distance[0][n] = 1.0;
    }
    phase[0][shape.radial] = std::numbers::pi / 2;
    constant[0][shape.radial] = 1.0;
    frequency_ = frequency.to(options);
    phase_ = phase.to(options);
    over_distance_ = over_distance.to(options);
    constant_ = constant.to(options);
    if (!elements.closest.empty())
        closest_ = at::tensor(elements.closest, at::kDouble).view({elements.size(), elements.size()}).to(options);
}

// See painn/functions/near_field.h. Padding edges have no element; any will do, because they are longer than the cutoff
// and keep their distance.
EdgeFunctions::Seen EdgeFunctions::see(const at::Tensor& distance, const AtomGraph& graph) const {
    const at::Tensor element = graph.element_one_hot.argmax(1);
    const at::Tensor pair =
        element.index_select(0, graph.lists.receiver) * closest_.size(1) + element.index_select(0, graph.lists.sender);
    const at::Tensor closest = closest_.view({-1, 1}).index_select(0, pair), width = 0.3 * closest;
    const at::Tensor x = ((closest - distance) / width).clamp(0, 1), square = x.square();
    return {at::where(distance.lt(closest), closest - width * x * (1 + square * (0.5 * x - 1)), distance),
            1 + square * (2 * x - 3)};
}

void EdgeFunctions::compute(const at::Tensor& vectors, AtomGraph& graph) const {
    const at::NoGradGuard no_grad;
    const at::Tensor distance = at::linalg_vector_norm(vectors, 2, at::IntArrayRef{1}, /*keepdim=*/true);  // [edges][1]
    graph.inverse_distance = distance.reciprocal();
    graph.direction = vectors * graph.inverse_distance;
    const Seen seen = closest_.defined() ? see(distance, graph) : Seen{distance, {}};
    const at::Tensor inverse_seen = closest_.defined() ? seen.distance.reciprocal() : graph.inverse_distance;
    const double wave = std::numbers::pi / cutoff_;
    const at::Tensor is_inside = distance.lt(cutoff_).to(distance.scalar_type());
    const at::Tensor angle_of_fade = seen.distance * wave;
    const at::Tensor fade = at::cos(angle_of_fade).add_(1).mul_(0.5).mul_(is_inside);
    const at::Tensor fade_slope = at::sin(angle_of_fade).mul_(-0.5 * wave).mul_(is_inside);
    const at::Tensor angle = at::addcmul(phase_, seen.distance, frequency_);
    const at::Tensor sine = at::sin(angle);
    const at::Tensor envelope = at::addcmul(constant_, inverse_seen, over_distance_);
    const at::Tensor bare = sine * envelope;
    // d(bare)/dd = frequency cos(angle) envelope - sine over_distance / d^2
    const at::Tensor slope =
        at::cos(angle).mul_(frequency_).mul_(envelope).sub_(sine * over_distance_ * inverse_seen.square());
    graph.features = bare * fade;
    graph.feature_slopes = at::addcmul(bare * fade_slope, slope, fade);
    if (seen.slope.defined()) graph.feature_slopes.mul_(seen.slope);
}

EnergyAndGradient energy_and_gradient(const Parameters& parameters, const AtomGraph& inputs, bool differentiable) {
    const at::AutoGradMode with_gradients(true);
    // Energies depend on edge vectors only through features(d) and u. The rest of the chain rule is written out below
    // with constants of the batch, so it need not be differentiated again.
    AtomGraph graph = inputs;
    graph.features = inputs.features.detach().requires_grad_();
    graph.direction = inputs.direction.detach().requires_grad_();

    NodeState node;
    node.scalars = at::mm(graph.element_one_hot, parameters.embedding);
    for (size_t b = 0; b < parameters.blocks.size(); ++b) {
        node = add_messages(parameters.blocks[b], graph, node);
        node = update(parameters.blocks[b], node, b + 1 == parameters.blocks.size());
    }
    EnergyAndGradient result;
    result.atom_energy = two_layers(parameters.readout_hidden, parameters.readout_output, node.scalars) * graph.scale;

    const auto gradients = torch::autograd::grad({result.atom_energy}, {graph.features, graph.direction},
                                                 {at::ones_like(result.atom_energy)},
                                                 /*retain_graph=*/differentiable, /*create_graph=*/differentiable);
    // dE/dr = u (dE/dfeatures . slopes) + (1 - u u^T) dE/du / d
    const at::Tensor across = gradients[1] * graph.inverse_distance;
    const at::Tensor along =
        (gradients[0] * graph.feature_slopes).sum(1, true) - (across * inputs.direction).sum(1, true);
    result.edge_gradient = at::addcmul(across, along, inputs.direction);
    return result;
}

at::Tensor forces_of(const at::Tensor& edge_gradient, const AtomGraph& graph) {
    return at::zeros({graph.scale.size(0), 3}, edge_gradient.options())
        .index_add(0, graph.lists.receiver, edge_gradient)
        .index_add(0, graph.lists.sender, edge_gradient, -1);
}

}  // namespace mlff::train
