// SPDX-License-Identifier: MIT
// The work that profiles of MACE on the GPU count: against the formulas, computed here with numbers that count their
// own additions and multiplications, and against what the CPU backend counts. Needs no GPU.
#include <doctest/doctest.h>

#include <map>
#include <set>
#include <tuple>

#include "mace/cpu/evaluator.h"
#include "mace/gpu/stage_work.h"
#include "neighbors/neighbor_list.h"
#include "test_mace_backends.h"

using namespace mace_test;
using mlff::gpu::StepWork;

namespace {

int64_t operations = 0;
struct Counted {};
Counted operator*(Counted, Counted) { return ++operations, Counted(); }
Counted operator*(double, Counted) { return ++operations, Counted(); }
Counted operator*(Counted, double) { return ++operations, Counted(); }
Counted operator+(Counted, Counted) { return ++operations, Counted(); }
Counted operator+(Counted, double) { return ++operations, Counted(); }
Counted operator-(Counted, Counted) { return ++operations, Counted(); }
Counted operator/(Counted, Counted) { return {}; }
Counted& operator+=(Counted& to, Counted from) { return to = to + from; }

template <class Work>
double count(const Work& work) {
    operations = 0;
    work();
    return static_cast<double>(operations);
}

namespace formulas {
#define MLFF_FORMULA inline
#include "equivariant/harmonics_formulas.inc"
#undef MLFF_FORMULA
}  // namespace formulas

const std::vector<std::string> kModels = {"p02_mp0like_l1_c3_f32", "p03_mace_plain_l1",   "p04_density_agnesi_zbl",
                                          "p06_att_residual_f32",  "p07_nonlinear_mh",    "p08_omol_like_f32",
                                          "p09_l2_ell3",           "p11_3layers_corrlist"};

template <class Real>
struct Plans {
    Plans(const mace::Weights& weights, bool are_fused) {
        Irreps scalars;
        scalars.append(weights.channel_count, Irrep{});
        first = mace::plan::RowLayout(scalars);
        const mace::plan::RowLayout* below = &first;
        for (const mace::Layer& layer : weights.layers) {
            layers.push_back(std::make_unique<mace::plan::LayerPlan<Real>>(
                weights, layer, *below, mace::plan::LayerOptions{.hidden_radial = are_fused}));
            below = &layers.back()->features_layout;
        }
    }
    mace::plan::RowLayout first;
    std::vector<std::unique_ptr<mace::plan::LayerPlan<Real>>> layers;
};

bool has_edge_network(const mace::Layer& layer) {
    return layer.interaction.edge_input == mace::Interaction::EdgeInput::features;
}

// out = map(in) for one atom.
void apply(const Linear& map) {
    for (const Linear::Path& path : map.paths)
        for (int u = 0; u < map.in[path.in_block].multiplicity; ++u)
            for (int w = 0; w < map.out[path.out_block].multiplicity; ++w)
                for (int m = 0; m < map.in[path.in_block].irrep.dimension(); ++m) {
                    Counted out, in, weight;
                    out += weight * in;
                }
}
double padded_size(const Irreps& irreps) {
    double size = 0;
    for (const IrrepBlock& block : irreps.blocks())
        size += (block.multiplicity + 15) / 16 * 16 * block.irrep.dimension();
    return size;
}

// value = row + sum of differences times shares of the interval, or the slope without the row
void interpolate(bool has_slope) {
    Counted value, slope, share, difference;
    for (int t = 0; t < 5; ++t) {
        value += share * difference;
        if (has_slope) slope += share * difference;
    }
}

// The products of one edge, path by path, for weights that are known.
void sum_products(const Convolution& convolution) {
    for (const Convolution::Path& path : convolution.paths)
        for (int u = 0; u < convolution.in[path.in_block].multiplicity; ++u)
            for (int a = 0; a < convolution.in[path.in_block].irrep.dimension(); ++a) {
                Counted radial, feature, share, sum;
                const Counted weighed = radial * feature;
                for (int c = 0; c < convolution.out[path.out_block].irrep.dimension(); ++c) sum += share * weighed;
            }
}
// And their reverse, up to the gradients of weights, features and shares.
void reverse_products(const Convolution& convolution, bool has_features_gradient) {
    for (const Convolution::Path& path : convolution.paths)
        for (int u = 0; u < convolution.in[path.in_block].multiplicity; ++u)
            for (int a = 0; a < convolution.in[path.in_block].irrep.dimension(); ++a) {
                Counted radial, feature, share, by_sum, pulled, by_radial, by_feature, by_share;
                const int out = convolution.out[path.out_block].irrep.dimension();
                for (int c = 0; c < out; ++c) pulled += share * by_sum;
                by_radial += feature * pulled;
                if (has_features_gradient) by_feature += radial * pulled;
                const Counted weighed = radial * feature;
                for (int c = 0; c < out; ++c) by_share += weighed * by_sum;
            }
}
void walk_couplings(const Convolution& convolution) {
    for (const Convolution::Path& path : convolution.paths)
        for (const Convolution::Coupling& coupling : path.couplings) {
            Counted share, harmonic;
            share += coupling.value * harmonic;
        }
}
int weight_count(const Convolution& convolution) {
    int count = 0;
    for (const Convolution::Path& path : convolution.paths) count += convolution.in[path.in_block].multiplicity;
    return count;
}
int share_count(const Convolution& convolution) {
    int count = 0;
    for (const Convolution::Path& path : convolution.paths)
        count += convolution.in[path.in_block].irrep.dimension() * convolution.out[path.out_block].irrep.dimension();
    return count;
}
int function_count(const mace::Interaction& interaction) {
    const DenseLayer& last = interaction.radial_network.layers.back();
    return last.in_width + (last.bias.empty() ? 0 : 1);
}
// In these models some path reads every block.
int features_read(const Convolution& convolution) {
    std::set<int> blocks;
    for (const Convolution::Path& path : convolution.paths) blocks.insert(path.in_block);
    CHECK(blocks.size() == convolution.in.blocks().size());
    return convolution.in.dimension();
}

// Fused messages of one edge.
void fused_messages(const mace::Interaction& interaction, int harmonics, bool is_reverse, bool is_first, bool is_kept,
                    int partials) {
    const Convolution& convolution = interaction.convolution;
    const int functions = function_count(interaction);
    if (!is_reverse || !is_kept)
        for (int h = 0; h < functions; ++h) interpolate(is_reverse || is_kept);
    walk_couplings(convolution);  // shares, for all channels
    Counted radial, slope, weight, function, function_slope, by_distance, by_radial;
    for (int w = 0; w < weight_count(convolution); ++w)
        for (int h = 0; h < functions; ++h) {
            radial += weight * function;
            if (is_reverse) slope += weight * function_slope;
        }
    if (!is_reverse) return sum_products(convolution);
    reverse_products(convolution, !is_first);
    for (int w = 0; w < weight_count(convolution); ++w) by_distance += slope * by_radial;
    walk_couplings(convolution);  // from gradients of shares to those of harmonics
    for (int i = 0; i < partials * (harmonics + 1); ++i) by_distance += slope;
    if (is_first) return;
    for (int i = 0; i < features_read(convolution); ++i) by_radial += function;  // gathered
}
double fused_bytes(const mace::Interaction& interaction, int harmonics, bool is_reverse, bool is_first, bool is_last,
                   bool is_kept, int partials, double real) {
    const double functions = function_count(interaction), features = features_read(interaction.convolution),
                 edge = harmonics * real + 8;
    double bytes = 0;
    if (!is_reverse || !is_kept) {
        bytes += edge + 6 * functions * real;                                       // harmonics, distance, tables
        bytes += (functions * (is_reverse || is_kept ? 2 : 1) + harmonics) * real;  // written
    }
    bytes += (functions * (is_reverse ? 2 : 1) + harmonics + features) * real;
    if (!is_reverse) return bytes;
    if (!is_first) bytes += 2 * features * real;
    bytes += 2 * partials * (harmonics + 1) * real;
    return bytes + (is_last ? edge : 2 * edge);
}

// The nodes of the tree of monomials of one row of a contraction, without the root.
struct Tree {
    int leaves = 0, branches = 0;
};
Tree tree_of(const mace::SymmetricContraction& contraction, int out) {
    std::set<std::vector<int>> nodes, parents;
    for (int t = contraction.first_term[static_cast<size_t>(out)];
         t < contraction.first_term[static_cast<size_t>(out) + 1]; ++t) {
        const auto& term = contraction.terms[static_cast<size_t>(t)];
        std::vector<int> rows;
        for (int k = 0; k < term.order; ++k) {
            if (k > 0) parents.insert(rows);
            rows.push_back(term.rows[static_cast<size_t>(k)]);
            nodes.insert(rows);
        }
    }
    return {static_cast<int>(nodes.size() - parents.size()), static_cast<int>(parents.size())};
}
void contract(const mace::SymmetricContraction& contraction, bool is_reverse) {
    for (int out = 0; out < contraction.out_row_count; ++out) {
        const Tree tree = tree_of(contraction, out);
        for (int u = 0; u < contraction.channel_count; ++u) {
            Counted value, below, coefficient, factor, gradient, in_gradient;
            for (int leaf = 0; leaf < tree.leaves; ++leaf) {
                value += coefficient * factor;
                if (is_reverse) in_gradient += gradient * coefficient;
            }
            for (int branch = 0; branch < tree.branches; ++branch) {
                value += factor * below;
                if (!is_reverse) continue;
                gradient = gradient * factor;
                in_gradient += gradient * below;
            }
        }
    }
}

void gate(const Gate& gate, bool is_reverse) {
    Counted value, in, by_out, by_gate, slope, by_in;
    for (int i = 0; is_reverse && i < gate.scalar_count + gate.gate_count; ++i) by_in = by_gate * slope;
    for (int i = 0; i < gate.out.dimension() - gate.scalar_count; ++i) {
        if (!is_reverse) {
            in = value * in;
            continue;
        }
        by_in = value * by_out;
        by_gate += in * by_out;
    }
}

void readout(const mace::Readout& readout) {
    apply(readout.first);
    if (readout.middle) apply(*readout.middle);
    if (readout.last) apply(*readout.last);
}

void check_work(const StageWork& found, double flops, double bytes) {
    CHECK(found.flops == flops);
    CHECK(found.bytes == bytes);
}
void check_map(const StepWork& found, const Linear& map, double real) {
    check_work(found.of_atom, count([&] { apply(map); }), (padded_size(map.in) + padded_size(map.out)) * real);
    check_work(found.of_edge, 0, 0);
}

template <class Real>
void check_layer(const mace::Weights& weights, size_t index, const mace::plan::LayerPlan<Real>& plan, bool is_fused) {
    const mace::Layer& layer = weights.layers[index];
    const mace::Interaction& interaction = layer.interaction;
    const Convolution& convolution = interaction.convolution;
    const bool is_first = index == 0, is_last = index + 1 == weights.layers.size();
    const double real = sizeof(Real);
    const int harmonics = harmonic_count(weights.max_degree);
    check_map(mace::gpu::map_work(plan.up), interaction.up, real);
    for (const bool is_reverse : {false, true}) {
        CAPTURE(is_reverse);
        const StageWork contraction = mace::gpu::contraction_work(plan, is_reverse).of_atom;
        check_work(contraction, count([&] { contract(layer.contraction, is_reverse); }),
                   layer.contraction.channel_count *
                       ((is_reverse ? 2 : 1) * layer.contraction.in_row_count + layer.contraction.out_row_count) *
                       real);

        const bool has_skip = interaction.skip && layer.uses_skip && !(is_reverse && is_first);
        const auto map_bytes = [&](const Irreps& in, const Irreps& out) {
            return (padded_size(in) + padded_size(out)) * real;
        };
        double maps_bytes = map_bytes(layer.linear.in, layer.linear.out);
        if (has_skip) maps_bytes += map_bytes(interaction.skip->in, interaction.skip->out);
        check_work(mace::gpu::linear_maps_work(plan, is_reverse).of_atom, count([&] {
                       apply(layer.linear);
                       if (has_skip) apply(*interaction.skip);
                   }),
                   maps_bytes);
        const Irreps& divided = interaction.gated ? interaction.gated->gate.in : layer.contraction.in;
        if (interaction.gated) {
            const Irreps &sent = convolution.in, &gated = interaction.gated->gate.out, &message = layer.contraction.in;
            const bool has_residual = !(is_reverse && is_first);
            const double copied = 2 * divided.dimension() * real,
                         of_gate = ((is_reverse ? 2 : 1) * padded_size(divided) + padded_size(gated)) * real;
            check_work(mace::gpu::gate_work(plan, is_reverse).of_atom, count([&] {
                           gate(interaction.gated->gate, is_reverse);
                           apply(interaction.gated->after);
                           if (has_residual) apply(interaction.gated->residual);
                       }),
                       of_gate + map_bytes(gated, message) + (has_residual ? map_bytes(sent, divided) : 0) +
                           (is_reverse ? 0 : copied));
        }
        double division = 0, division_bytes = 0;
        if (interaction.density_network) {
            division = (is_reverse ? 3 : 1) * divided.dimension();
            division_bytes = (is_reverse ? (interaction.message_skip ? 4 : 3) : 2) * divided.dimension() * real;
        }
        const double edge_bytes = (harmonics * real + 8) * (!is_reverse ? 1 : is_last ? 2 : 3);
        if (plan.moments) {
            const std::vector<int> elements = {0, 1};
            const StepWork found = mace::gpu::moments_work<Real>(plan, elements, is_reverse);
            const int functions = function_count(interaction);
            CHECK(found.of_edge.flops == count([&] {
                      walk_couplings(convolution);
                      if (is_reverse) walk_couplings(convolution);
                      Counted share, function, slope, gradient, by_function, by_share, sum;
                      for (int h = 0; h < functions; ++h) {
                          interpolate(is_reverse);
                          for (int row = 0; row < share_count(convolution); ++row) {
                              if (is_reverse) by_share += function * gradient;
                              (is_reverse ? by_function : sum) += share * gradient;
                          }
                          if (is_reverse) sum += slope * by_function;
                      }
                  }));
            CHECK(found.of_edge.bytes == 6 * functions * real + edge_bytes);
            double flops = division, bytes = division_bytes;
            for (int element : elements) {
                const Linear map = plan.moments->plain_map(element);
                flops += count([&] { apply(map); });
                bytes += map_bytes(map.in, divided) + map.in.dimension() * real;
            }
            check_work(found.of_atom, flops, bytes);
            continue;
        }
        check_work(mace::gpu::message_map_work(plan, is_reverse).of_atom,
                   count([&] { apply(interaction.message); }) + division,
                   map_bytes(convolution.out, divided) + division_bytes);
        const double sums_bytes =
            (convolution.out.dimension() + (is_reverse && !is_first ? convolution.in.dimension() : 0)) * real;
        const auto walk_products = [&] {
            walk_couplings(convolution);
            if (is_reverse) {
                walk_couplings(convolution);
                reverse_products(convolution, !is_first);
            } else {
                sum_products(convolution);
            }
        };
        if (has_edge_network(layer)) {
            const std::vector<DenseLayer>& network = interaction.radial_network.layers;
            const StepWork found = mace::gpu::network_messages_work(plan, is_reverse);
            CHECK(found.of_edge.flops == count([&] {
                      walk_products();
                      Counted sum, x, weight;
                      for (int k = 0; k < network.front().out_width; ++k) {
                          interpolate(false);
                          sum += x;  // a number of each atom, or its gradient
                          sum += x;
                          if (is_reverse) sum += weight * x;
                      }
                      for (size_t n = 1; n < network.size(); ++n)
                          for (int i = 0; i < network[n].in_width * network[n].out_width; ++i) sum += weight * x;
                      for (int w = 0; is_reverse && w < weight_count(convolution); ++w) sum += x;
                  }));
            const int in_of_ends = interaction.down->out.dimension(), ends = 2 * network.front().out_width;
            CHECK(found.of_atom.flops == (is_reverse && is_first ? 0 : count([&] {
                      apply(*interaction.down);
                      Counted sum, x, weight;
                      for (int i = 0; i < in_of_ends * ends; ++i) sum += weight * x;
                  })));
            CHECK(found.of_edge.bytes > 0);
            CHECK(found.of_atom.bytes >= sums_bytes);
        } else if (is_fused) {
            for (const bool is_kept : {false, true}) {
                CAPTURE(is_kept);
                constexpr int kPartials = 6;
                const StepWork found = mace::gpu::fused_messages_work(plan, {is_kept, kPartials}, is_reverse);
                check_work(
                    found.of_edge,
                    count([&] { fused_messages(interaction, harmonics, is_reverse, is_first, is_kept, kPartials); }),
                    fused_bytes(interaction, harmonics, is_reverse, is_first, is_last, is_kept, kPartials, real));
                check_work(found.of_atom, 0, sums_bytes);
            }
        } else {
            const StepWork found = mace::gpu::table_messages_work(plan, is_reverse);
            double numbers = 0;
            for (const Convolution::Path& path : convolution.paths)
                numbers += convolution.in[path.in_block].multiplicity *
                           (6 + convolution.in[path.in_block].irrep.dimension() +
                            (is_reverse ? convolution.out[path.out_block].irrep.dimension() : 0));
            check_work(found.of_edge, count([&] {
                           walk_products();
                           Counted slope, by_radial, sum;
                           for (int w = 0; w < weight_count(convolution); ++w) {
                               interpolate(is_reverse);
                               if (is_reverse) sum += slope * by_radial;
                           }
                       }),
                       numbers * real + edge_bytes);
            check_work(found.of_atom, 0, sums_bytes);
        }
    }
}

// Of one evaluation on the CPU, by direction, layer and name.
using StageFlops = std::map<std::tuple<Direction, int, std::string>, double>;

}  // namespace

TEST_CASE("the counted work of MACE's stages on the GPU is that of the formulas") {
    bool has_moments = false, has_fused = false, has_network = false, has_gate = false, has_density = false;
    for (const std::string& name : kModels) {
        CAPTURE(name);
        const mace_test::Model model(golden_model(name));
        const mace::Weights& weights = *model.weights;
        ThreadTeam team(1);
        bool can_fuse = true;
        for (const mace::Layer& layer : weights.layers)
            can_fuse = can_fuse && !has_edge_network(layer) &&
                       mace::plan::ends_in_linear_layer(layer.interaction.radial_network);
        Plans<float> single(weights, can_fuse);
        Plans<double> exact(weights, false);
        for (size_t i = 0; i < weights.layers.size(); ++i) {
            CAPTURE(i);
            if (single.layers[i]->moments)
                for (int element : {0, 1}) {
                    single.layers[i]->moments->prepare(element);
                    exact.layers[i]->moments->prepare(element);
                }
            check_layer(weights, i, *single.layers[i], can_fuse);
            check_layer(weights, i, *exact.layers[i], false);
            has_moments = has_moments || single.layers[i]->moments;
            has_fused = has_fused || (can_fuse && !single.layers[i]->moments);
            has_network = has_network || has_edge_network(weights.layers[i]);
            has_gate = has_gate || single.layers[i]->gate;
            has_density = has_density || weights.layers[i].interaction.density_network;
        }
        double features = 0, gradients = 0;
        for (const mace::Readout& each : weights.readouts)
            for (const IrrepBlock& block : each.first.in.blocks())
                if (block.irrep.is_scalar()) features += block.multiplicity;
        for (const mace::Layer& layer : weights.layers) gradients += layer.linear.out.dimension();
        if (weights.head_count() == 1) {
            const double products = count([&] {
                for (const mace::Readout& each : weights.readouts) readout(each);
            }),
                         energies = 8.0 * static_cast<double>(weights.readouts.size());
            check_work(mace::gpu::readouts_work<float>(weights, false).of_atom, products, 4 * features + energies);
            check_work(mace::gpu::readouts_work<double>(weights, true).of_atom, 2 * products,
                       8 * (features + gradients) + energies);
        }
    }
    CHECK((has_moments && has_fused && has_network && has_gate && has_density));
}

TEST_CASE("the counted work of harmonics and forces on the GPU is that of the formulas") {
    for (int degree = 0; degree <= mace::gpu::kCountedDegree; ++degree) {
        CAPTURE(degree);
        mace::Weights weights;
        weights.max_degree = degree;
        const int harmonics = (degree + 1) * (degree + 1);
        Counted x, values[16], gradient[3];
        const double forward = count([&] { formulas::harmonics_formula(degree, x, x, x, values); }) - 2,  // Y[0] = 1
            reverse = count([&] { formulas::reverse_harmonics_formula(degree, x, x, x, x, values, gradient); }) - 1;
        const StageWork found = mace::gpu::harmonics_work<float>(weights).of_edge,
                        forces = mace::gpu::forces_work<float>(weights, false).of_edge,
                        virials = mace::gpu::forces_work<float>(weights, true).of_edge;
        check_work(found, 3 + forward, 4 * 8 + 4 * harmonics);
        check_work(forces, 3 + reverse + 2 * 3 + 2 * 3, 4 * harmonics + 8 + 8 + 24 + 24 + 2 * 24);
        CHECK(virials.flops == forces.flops + count([&] {
                                   for (int i = 0; i < 3; ++i)
                                       for (int j = i; j < 3; ++j) x = x - 0.25 * (x * x + x * x);
                               }));
        CHECK(virials.bytes == forces.bytes + 24);
    }
    mace::Weights weights;
    weights.max_degree = mace::gpu::kCountedDegree + 1;
    CHECK(std::isnan(mace::gpu::harmonics_work<float>(weights).of_edge.flops));
    CHECK(std::isfinite(mace::gpu::harmonics_work<float>(weights).of_edge.bytes));
}

TEST_CASE("MACE's stages on the GPU count the operations that the CPU counts, where they do the same") {
    for (const std::string& name : kModels) {
        CAPTURE(name);
        const mace_test::Model model(golden_model(name));
        const mace::Weights& weights = *model.weights;
        const System system = random_crystal(weights, 5, 13, 7.0);
        const auto evaluator = mace::cpu::make_cpu_evaluator(model.weights, {});
        NeighborOptions options;
        options.cutoff = weights.cutoff;
        ThreadTeam team(1);
        NeighborList list(options);
        list.update(system.view(), team);
        StageProfile profile;
        team.set_profile(&profile);
        std::vector<double> forces(system.positions.size());
        Outputs outputs;
        outputs.forces = forces.data();
        evaluator->evaluate(system.view(), list.edges(), outputs, team);
        team.set_profile(nullptr);
        StageFlops on_cpu;
        for (const StageLog::Sum& sum : profile.stages())
            on_cpu[{sum.stage.direction, sum.stage.layer, sum.stage.name}] = sum.flops;

        Plans<double> plans(weights, false);
        std::set<int> elements;
        for (int32_t number : system.numbers) elements.insert(weights.element_of(number));
        const std::vector<int> present(elements.begin(), elements.end());
        const auto atoms = static_cast<double>(system.numbers.size()),
                   edges = static_cast<double>(list.edges().edge_count);
        REQUIRE(edges > 0);
        for (size_t i = 0; i < weights.layers.size(); ++i) {
            mace::plan::LayerPlan<double>& plan = *plans.layers[i];
            if (plan.moments)
                for (int element : present) plan.moments->prepare(element);
            for (const bool is_reverse : {false, true}) {
                CAPTURE(i);
                CAPTURE(is_reverse);
                size_t compared = 0;
                const auto compare = [&](const char* stage, const StepWork& work, double not_on_cpu = 0) {
                    CAPTURE(stage);
                    const auto found =
                        on_cpu.find({is_reverse ? Direction::reverse : Direction::forward, static_cast<int>(i), stage});
                    REQUIRE(found != on_cpu.end());
                    CHECK(found->second == (work.of_atom.flops - not_on_cpu) * atoms + work.of_edge.flops * edges);
                    ++compared;
                };
                const double division = mace::gpu::division_work(plan, is_reverse).of_atom.flops;
                compare("contraction", mace::gpu::contraction_work(plan, is_reverse));
                compare("linear maps", mace::gpu::linear_maps_work(plan, is_reverse));
                if (plan.gate) compare("gate", mace::gpu::gate_work(plan, is_reverse));
                if (plan.message_skip) compare("self connection of messages", mace::gpu::map_work(*plan.message_skip));
                if (plan.moments) {
                    compare("moments and messages", mace::gpu::moments_work<double>(plan, present, is_reverse),
                            division);
                } else {
                    compare("linear map of messages", mace::gpu::message_map_work(plan, is_reverse), division);
                    if (!plan.down) compare("messages", mace::gpu::table_messages_work(plan, is_reverse));
                }
                if (i > 0 && !plan.down) compare("what atoms send", mace::gpu::map_work(plan.up));
                CHECK(compared >= 3);
            }
        }
    }
}
