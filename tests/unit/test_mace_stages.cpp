// SPDX-License-Identifier: MIT
// The stages of the reference backend one by one: every reverse pass against finite differences.
#include <doctest/doctest.h>

#include "core/error.h"
#include "equivariant/convolution.h"
#include "equivariant/dense_network.h"
#include "equivariant/gate.h"
#include "equivariant/irreps.h"
#include "equivariant/linear.h"
#include "equivariant/radial_basis.h"
#include "mace/functions/embedding.h"
#include "mace/functions/pair_repulsion.h"
#include "mace/reference/contraction.h"
#include "mace/reference/readout.h"
#include "test_mace_numerics.h"
#include "test_mace_support.h"

using namespace mace_test;
using namespace mlff;
using namespace mlff::mace;
using namespace mlff::mace::reference;

namespace {

Linear random_linear(const char* in, const char* out, int element_count, bool with_bias, Random& random) {
    Linear linear;
    linear.in = Irreps::parse(in);
    linear.out = Irreps::parse(out);
    linear.element_count = element_count;
    for (int i = 0; i < linear.in.block_count(); ++i)
        for (int o = 0; o < linear.out.block_count(); ++o) {
            if (!(linear.in[i].irrep == linear.out[o].irrep)) continue;
            const int count = element_count * linear.in[i].multiplicity * linear.out[o].multiplicity;
            linear.paths.push_back({i, o, random.numbers(static_cast<size_t>(count))});
        }
    if (with_bias) linear.bias = random.numbers(static_cast<size_t>(linear.out.dimension()));
    return linear;
}

DenseLayer random_layer(int in, int out, bool norm, Activation::Kind kind, Random& random) {
    DenseLayer layer;
    layer.in_width = in;
    layer.out_width = out;
    layer.weight = random.numbers(static_cast<size_t>(in * out));
    layer.bias = random.numbers(static_cast<size_t>(out));
    if (norm) {
        layer.norm_scale = random.numbers(static_cast<size_t>(out));
        layer.norm_offset = random.numbers(static_cast<size_t>(out));
        layer.norm_epsilon = 1e-5;
    }
    layer.activation = {kind, 1.3};
    return layer;
}

}  // namespace

TEST_CASE("mace radial: slopes of basis, transforms, cutoff and repulsion") {
    Random random;
    for (const auto basis :
         {RadialEmbedding::Basis::bessel, RadialEmbedding::Basis::gaussian, RadialEmbedding::Basis::chebyshev})
        for (const auto transform : {RadialEmbedding::Transform::none, RadialEmbedding::Transform::agnesi,
                                     RadialEmbedding::Transform::soft, RadialEmbedding::Transform::soft_2023})
            for (const bool cutoff_in_basis : {true, false}) {
                RadialEmbedding radial;
                radial.basis = basis;
                radial.transform = transform;
                radial.cutoff_in_basis = cutoff_in_basis;
                radial.basis_count = 5;
                radial.parameters = {0.5, 1.1, 1.9, 2.4, 3.3};
                radial.factor = basis == RadialEmbedding::Basis::gaussian ? -1.7 : 0.6;
                radial.a = transform == RadialEmbedding::Transform::agnesi ? 1.0805 : 0.2;
                radial.p = 4.5791;
                radial.q = 0.9183;
                radial.alpha = 4;
                radial.b = 3;
                radial.radii = {0.31, 0.76};
                radial.cutoff = {4.5, 5};
                const std::vector<double> weights = random.numbers(6);
                for (double r : {0.4, 1.1, 2.7, 4.3}) {
                    const double slope = reverse_radial(radial, 0, 1, r, weights.data(), weights[5]);
                    const Function f = [&](const std::vector<double>& x) {
                        std::vector<double> values(6);
                        compute_radial(radial, 0, 1, x[0], values.data(), &values[5]);
                        return values;
                    };
                    check_gradient(f, {r}, weights, {slope});
                }
            }
    const ValueAndSlope beyond = cutoff_function({4.5, 5}, 4.5);
    CHECK(beyond.value == 0);
    CHECK(beyond.slope == 0);
    CHECK(std::abs(cutoff_function({4.5, 5}, 4.5 - 1e-6).value) <= 1e-14);
    CHECK(cutoff_function({4.5, 1}, 0.0).value == 1);

    Weights weights;
    weights.atomic_numbers = {1, 26};
    const PairRepulsion repulsion = {{0.1818, 0.5099, 0.2802, 0.02817}, 0.4543, 0.3, 6, {0.31, 1.32}};
    const Function f = [&](const std::vector<double>& x) {
        return std::vector<double>{pair_repulsion(repulsion, weights, 0, 1, x[0]).value};
    };
    for (double r : {0.5, 1.0, 1.6}) check_gradient(f, {r}, {1.0}, {pair_repulsion(repulsion, weights, 0, 1, r).slope});
    CHECK(pair_repulsion(repulsion, weights, 0, 1, 1.64).value == 0);
}

TEST_CASE("mace network: gradients with and without normalisation") {
    Random random;
    for (const bool norm : {false, true})
        for (const auto kind : {Activation::Kind::silu, Activation::Kind::tanh, Activation::Kind::sigmoid,
                                Activation::Kind::absolute, Activation::Kind::identity}) {
            DenseNetwork network;
            network.layers.push_back(random_layer(4, 7, norm, kind, random));
            network.layers.push_back(random_layer(7, 5, norm, kind, random));
            network.layers.push_back(random_layer(5, 3, false, Activation::Kind::identity, random));
            const Function f = [&](const std::vector<double>& x) {
                NetworkPass pass(network);
                const double* out = pass.compute(x.data());
                return std::vector<double>(out, out + 3);
            };
            const std::vector<double> input = random.numbers(4), weights = random.numbers(3);
            NetworkPass pass(network);
            pass.compute(input.data());
            std::vector<double> gradient(4);
            pass.reverse(weights.data(), gradient.data());
            check_gradient(f, input, weights, gradient);
        }
}

TEST_CASE("mace linear and gate: gradients") {
    Random random;
    const Linear linear = random_linear("3x0e+2x1o+1x0e+2x2e", "2x0e+3x1o+1x1o+1x3e", 2, true, random);
    const auto in_size = static_cast<size_t>(linear.in.dimension()),
               out_size = static_cast<size_t>(linear.out.dimension());
    for (int element : {0, 1}) {
        const std::vector<double> input = random.numbers(in_size), weights = random.numbers(out_size);
        std::vector<double> gradient(in_size, 0.0);
        reverse_linear(linear, element, weights.data(), gradient.data());
        const Function f = [&](const std::vector<double>& x) {
            std::vector<double> out(out_size);
            compute_linear(linear, element, x.data(), out.data());
            return out;
        };
        check_gradient(f, input, weights, gradient);
    }

    Gate gate;
    gate.in = Irreps::parse("3x0e+2x0e+1x0e+2x1o+1x2e");
    gate.out = Irreps::parse("3x0e+2x1o+1x2e");
    gate.scalar_count = 3;
    gate.gate_count = 3;
    gate.scalar_activation = {Activation::Kind::silu, 1.68};
    gate.gate_activation = {Activation::Kind::sigmoid, 1.85};
    const std::vector<double> input = random.numbers(17), weights = random.numbers(14);
    std::vector<double> gradient(17);
    reverse_gate(gate, input.data(), weights.data(), gradient.data());
    const Function f = [&](const std::vector<double>& x) {
        std::vector<double> out(14);
        compute_gate(gate, x.data(), out.data());
        return out;
    };
    check_gradient(f, input, weights, gradient);
}

TEST_CASE("mace readout: gradients, and a head sees its own slice only") {
    Random random;
    for (const bool has_middle : {false, true}) {
        Readout readout;
        readout.first = random_linear("4x0e+2x1o", "6x0e", 1, false, random);
        readout.activation = {Activation::Kind::silu, 1.68};
        if (has_middle) readout.middle = random_linear("6x0e", "6x0e", 1, true, random);
        readout.last = random_linear("6x0e", "3x0e", 1, true, random);
        readout.head_slices = 3;
        for (int head = 0; head < 3; ++head) {
            const std::vector<double> input = random.numbers(10);
            std::vector<double> gradient(10, 0.0);
            reverse_readout(readout, head, input.data(), 0.7, gradient.data());
            const Function f = [&](const std::vector<double>& x) {
                return std::vector<double>{compute_readout(readout, head, x.data())};
            };
            check_gradient(f, input, {0.7}, gradient);
        }
        Readout changed = readout;
        for (size_t in = 0; in < 4; ++in)
            changed.first.paths[0].weight[in * 6 + 0] += 1;  // a weight of the first slice
        const std::vector<double> input = random.numbers(10);
        CHECK(compute_readout(changed, 0, input.data()) != compute_readout(readout, 0, input.data()));
        CHECK(compute_readout(changed, 1, input.data()) == compute_readout(readout, 1, input.data()));
    }
}

TEST_CASE("mace layers of real models: gradients of messages and contractions, rotation of contractions") {
    int tested = 0;
    for (const std::string name :
         {"p09_l2_ell3", "p11_3layers_corrlist", "p18_cueq_ir_mul", "p25_odd_parity", "p01_ss_l0_c3"}) {
        if (golden_model(name).empty()) continue;
        CAPTURE(name);
        Random random;
        const Model model(golden_model(name));
        const Layer& layer =
            model.weights->layers[model.weights->layers.size() - 2 + (model.weights->layers.size() == 1)];
        const SymmetricContraction& contraction = layer.contraction;
        const auto basis_size = static_cast<size_t>(contraction.in.dimension());
        const auto product_size = static_cast<size_t>(contraction.out.dimension());
        const std::vector<double> basis = random.numbers(basis_size), weights = random.numbers(product_size);
        std::vector<double> gradient(basis_size);
        reverse_contraction(contraction, 1, basis.data(), weights.data(), gradient.data());
        const Function contract = [&](const std::vector<double>& x) {
            std::vector<double> out(product_size);
            compute_contraction(contraction, 1, x.data(), out.data());
            return out;
        };
        check_gradient(contract, basis, weights, gradient);

        const auto turned = [&](const Irreps& irreps, const std::vector<double>& features) {
            std::vector<double> result(features.size(), 0.0);
            for (const IrrepBlock& block : irreps.blocks()) {
                const auto size = static_cast<size_t>(block.irrep.dimension());
                const std::vector<double> d = rotation_matrix(block.irrep.degree, kRotation);
                for (size_t u = 0; u < static_cast<size_t>(block.multiplicity); ++u)
                    for (size_t a = 0; a < size; ++a)
                        for (size_t b = 0; b < size; ++b)
                            result[static_cast<size_t>(block.offset) + u * size + a] +=
                                d[a * size + b] * features[static_cast<size_t>(block.offset) + u * size + b];
            }
            return result;
        };
        const double rotated =
            largest_difference(contract(turned(contraction.in, basis)), turned(contraction.out, contract(basis)));
        CHECK(rotated <= 1e-11 * std::max(1.0, largest_size(contract(basis))));

        const Convolution& convolution = layer.interaction.convolution;
        const std::vector<double> features = random.numbers(static_cast<size_t>(convolution.in.dimension()));
        const std::vector<double> harmonics =
            random.numbers(static_cast<size_t>(harmonic_count(model.weights->max_degree)));
        const std::vector<double> edge = random.numbers(static_cast<size_t>(convolution.weight_count));
        const std::vector<double> pull = random.numbers(static_cast<size_t>(convolution.out.dimension()));
        std::vector<double> by_features(features.size(), 0.0), by_harmonics(harmonics.size(), 0.0),
            by_edge(edge.size());
        reverse_message_of_edge(convolution, features.data(), harmonics.data(), edge.data(), pull.data(),
                                by_harmonics.data(), by_edge.data());
        reverse_message_of_sender(convolution, harmonics.data(), edge.data(), pull.data(), by_features.data());
        const auto message = [&](const std::vector<double>& f, const std::vector<double>& y,
                                 const std::vector<double>& w) {
            std::vector<double> out(pull.size(), 0.0);
            compute_message(convolution, f.data(), y.data(), w.data(), out.data());
            return out;
        };
        check_gradient([&](const auto& x) { return message(x, harmonics, edge); }, features, pull, by_features);
        check_gradient([&](const auto& x) { return message(features, x, edge); }, harmonics, pull, by_harmonics);
        check_gradient([&](const auto& x) { return message(features, harmonics, x); }, edge, pull, by_edge);
        ++tested;
    }
    CHECK(tested >= 1);
}

TEST_CASE("mace embedding: a charge outside of the table is refused, a continuous input works") {
    Random random;
    Weights weights;
    weights.atomic_numbers = {1};
    weights.channel_count = 2;
    weights.node_embedding = {0.5, -0.5};
    JointEmbedding joint;
    JointEmbedding::Input charge;
    charge.width = 2;
    charge.offset = 1;
    charge.row_count = 3;
    charge.table = random.numbers(6);
    JointEmbedding::Input spin;
    spin.quantity = JointEmbedding::Quantity::total_spin;
    spin.categorical = false;
    spin.network.layers = {random_layer(1, 3, false, Activation::Kind::silu, random),
                           random_layer(3, 2, false, Activation::Kind::identity, random)};
    spin.width = 2;
    joint.inputs = {charge, spin};
    joint.projection.layers = {random_layer(4, 2, false, Activation::Kind::silu, random)};
    weights.joint_embedding = joint;
    mlff::SystemView system;
    std::vector<double> features;
    const std::vector<int> elements = {0};
    for (double good : {-1.0, 0.0, 1.0}) {
        system.total_charge = good;
        compute_embedding(weights, system, elements, features);
        CHECK(features.size() == 2);
    }
    for (double bad : {-2.0, 2.0, 0.5, std::nan("")}) {
        system.total_charge = bad;
        CHECK_THROWS_AS(compute_embedding(weights, system, elements, features), mlff::Error);
    }
    CHECK(embedding_energy(weights, 0, 0, features.data()) == 0);
}
