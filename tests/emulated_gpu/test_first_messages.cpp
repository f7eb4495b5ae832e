// SPDX-License-Identifier: MIT
// The kernels of PaiNN's first messages on the emulated GPU: many elements, functions and edges, against sums over
// edges.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "../unit/close.h"
#include "painn/gpu/edge_stage.h"
#include "painn/gpu/first_messages.h"
#include "painn/gpu/messages.h"
#include "painn/gpu/sizes.h"
#include "random_painn.h"

using namespace mlff;
using namespace mlff::test;

namespace {

constexpr int kComponents = painn::gpu::kGradientRows;  // s, v_x, v_y, v_z

// Atoms with the numbers of edges given, to random places. Elements beyond `used_elements` send nothing.
struct FirstCase {
    std::shared_ptr<Weights> weights;
    std::vector<int64_t> first = {0};
    std::vector<int32_t> sender, elements;
    Numbers vector, distance;

    FirstCase(int width, int radial_count, int element_count, int used_elements, const std::vector<int>& edge_counts)
        : weights(std::make_shared<Weights>(*random_weights(3, width, 1, radial_count, false))) {
        Random random(17);
        weights->atomic_numbers.clear();
        for (int z = 1; z <= element_count; ++z) weights->atomic_numbers.push_back(z);
        weights->embedding.clear();
        for (int i = 0; i < element_count * width; ++i) weights->embedding.push_back(random(-1, 1));
        const int atoms = static_cast<int>(edge_counts.size());
        // Element 0 sends nothing either.
        for (int i = 0; i < atoms; ++i) elements.push_back(1 + (i + random.below(3)) % used_elements);
        elements.push_back(0);
        elements.push_back(element_count - 1);
        for (const int count : edge_counts) {
            for (int e = 0; e < count; ++e) {
                sender.push_back(random.below(atoms));
                double square = 0;
                for (int k = 0; k < 3; ++k) {
                    vector.push_back(random(-2.2, 2.2));
                    square += vector.back() * vector.back();
                }
                distance.push_back(std::sqrt(square));
            }
            first.push_back(static_cast<int64_t>(sender.size()));
        }
    }
    size_t atom_count() const { return first.size() - 1; }
    size_t width() const { return static_cast<size_t>(weights->hidden); }
    gpu::StepEdges edges() const {
        gpu::StepEdges edges;
        edges.atom_count = static_cast<int32_t>(atom_count());
        edges.capacity = static_cast<int64_t>(sender.size());
        edges.first = first.data();
        edges.sender = sender.data();
        edges.vector = vector.data();
        edges.distance = distance.data();
        edges.elements = elements.data();
        return edges;
    }
};

// ---- sums over edges ----

// Value and slope of part 0 (s) or 2 (u) of the filter for a channel.
void filter_plainly(const Weights& weights, size_t row, double d, double& value, double& slope) {
    const Linear& filter = weights.blocks[0].filter;
    const double wave = M_PI / weights.cutoff, fade = (1 + std::cos(wave * d)) / 2,
                 fade_slope = -wave / 2 * std::sin(wave * d);
    double sum = filter.bias[row], sum_slope = 0;
    for (int n = 1; n <= filter.in_width; ++n) {
        const double weight = filter.weight[row * static_cast<size_t>(filter.in_width) + static_cast<size_t>(n - 1)];
        sum += weight * std::sin(n * wave * d) / d;
        sum_slope += weight * (n * wave * std::cos(n * wave * d) - std::sin(n * wave * d) / d) / d;
    }
    value = sum * fade;
    slope = sum_slope * fade + sum * fade_slope;
}

struct Plain {
    Numbers received;         // [atom][kComponents][F]
    Numbers vector_gradient;  // [edge][3]
};
Plain compute_plainly(const FirstCase& each, const Numbers& gradient) {
    const size_t F = each.width();
    const Numbers sent = painn::gpu::first_sent(*each.weights);
    Plain plain = {Numbers(each.atom_count() * kComponents * F), Numbers(each.vector.size())};
    for (size_t i = 0; i < each.atom_count(); ++i) {
        double* received = &plain.received[i * kComponents * F];
        const double* by_received = &gradient[i * kComponents * F];
        for (size_t c = 0; c < F; ++c)
            received[c] = each.weights->embedding[static_cast<size_t>(each.elements[i]) * F + c];
        for (auto e = static_cast<size_t>(each.first[i]); e < static_cast<size_t>(each.first[i + 1]); ++e) {
            const double d = each.distance[e];
            const auto element = static_cast<size_t>(each.elements[static_cast<size_t>(each.sender[e])]);
            double u[3], by_distance = 0, turn[3] = {}, radial = 0;
            for (size_t k = 0; k < 3; ++k) u[k] = each.vector[3 * e + k] / d;
            for (size_t c = 0; c < F; ++c) {
                double s, s_slope, along, along_slope;
                filter_plainly(*each.weights, c, d, s, s_slope);
                filter_plainly(*each.weights, 2 * F + c, d, along, along_slope);
                const double phi_s = sent[2 * element * F + c], phi_u = sent[(2 * element + 1) * F + c];
                received[c] += phi_s * s;
                by_distance += by_received[c] * phi_s * s_slope;
                for (size_t k = 0; k < 3; ++k) {
                    received[(1 + k) * F + c] += phi_u * along * u[k];
                    by_distance += by_received[(1 + k) * F + c] * phi_u * along_slope * u[k];
                    turn[k] += by_received[(1 + k) * F + c] * phi_u * along;
                }
            }
            for (size_t k = 0; k < 3; ++k) radial += turn[k] * u[k];
            for (size_t k = 0; k < 3; ++k)
                plain.vector_gradient[3 * e + k] = by_distance * u[k] + (turn[k] - radial * u[k]) / d;
        }
    }
    return plain;
}

// ---- the kernels ----

template <class Real>
struct OnGpu {
    using Group = typename painn::gpu::FunctionLayout<Real>::Group;
    const FirstCase& each;
    int groups;
    painn::gpu::FirstMatrices<Real> matrices;
    std::vector<Group> values, slopes;
    std::vector<Real> directions;
    painn::gpu::EdgeFunctions<Real> functions;

    explicit OnGpu(const FirstCase& of)
        : each(of),
          groups(painn::gpu::FunctionLayout<Real>::group_count(of.weights->radial_count)),
          matrices(*of.weights, groups),
          values(of.sender.size() * static_cast<size_t>(groups)),
          slopes(values.size()),
          directions(4 * of.sender.size()),
          functions{values.data(), slopes.data(), directions.data(), groups} {
        Numbers energies(each.atom_count());
        int has_short_edge = 0;
        painn::gpu::EdgeStage stage;
        stage.edges = each.edges();
        stage.cutoff = each.weights->cutoff;
        stage.radial_count = each.weights->radial_count;
        stage.energies = energies.data();
        stage.has_short_edge = &has_short_edge;
        painn::gpu::compute_edges(stage, functions, nullptr);
        CHECK(has_short_edge == 0);
    }
    painn::gpu::FirstMatricesView<Real> view() const { return {matrices.forward.data(), matrices.transposed.data()}; }

    // [atom][kComponents][F] for the atoms of `edges`.
    std::vector<Real> sum(const gpu::StepEdges& edges, const std::vector<Real>& embedding) const {
        const size_t F = each.width(), atoms = static_cast<size_t>(edges.atom_count);
        std::vector<Real> scalars(atoms * F, NAN), vectors(3 * atoms * F, NAN), received;
        painn::gpu::sum_first_messages<Real>(
            static_cast<int>(F), {edges, functions, view(), embedding.data(), scalars.data(), vectors.data()}, nullptr);
        for (size_t i = 0; i < atoms; ++i) {
            received.insert(received.end(), &scalars[i * F], &scalars[i * F] + F);
            received.insert(received.end(), &vectors[3 * i * F], &vectors[3 * i * F] + 3 * F);
        }
        return received;
    }
    // Adds to the gradients of all edges.
    void reverse(const gpu::StepEdges& edges, const std::vector<Real>& gradient, Numbers& vector_gradient) const {
        painn::gpu::reverse_first_messages<Real>(static_cast<int>(each.width()),
                                                 {edges, functions, view(), gradient.data(), vector_gradient.data()},
                                                 nullptr);
    }
};

double largest_of(const Numbers& numbers) {
    double largest = 0;
    for (const double x : numbers) largest = std::max(largest, std::abs(x));
    return largest;
}

template <class Real>
void check_first(const FirstCase& each) {
    CAPTURE(each.width());
    CAPTURE(each.weights->radial_count);
    CAPTURE(sizeof(Real));
    const size_t F = each.width(), row = kComponents * F;
    Random random(29);
    Numbers gradient;
    for (size_t i = 0; i < each.atom_count() * row; ++i)
        gradient.push_back(static_cast<double>(static_cast<Real>(random(-1, 1))));
    const Plain plain = compute_plainly(each, gradient);
    const OnGpu<Real> on_gpu(each);
    const std::vector<Real> embedding(each.weights->embedding.begin(), each.weights->embedding.end()),
        gradient_there(gradient.begin(), gradient.end());
    const Numbers before(each.vector.size(), 0.25);
    for (const int64_t few : {int64_t{512}, int64_t{0}}) {
        CAPTURE(few);
        painn::gpu::chosen_few_atoms = few;
        const double tolerance = sizeof(Real) == 8 ? 1e-12 : 2e-6;
        const std::vector<Real> received = on_gpu.sum(each.edges(), embedding);
        CHECK_ALL_CLOSE(Numbers(received.begin(), received.end()), plain.received,
                        tolerance * largest_of(plain.received));
        Numbers vector_gradient = before;
        on_gpu.reverse(each.edges(), gradient_there, vector_gradient);
        Numbers added = vector_gradient;
        for (double& x : added) x -= 0.25;
        CHECK_ALL_CLOSE(added, plain.vector_gradient, tolerance * largest_of(plain.vector_gradient));

        // The same bits, whatever other atoms are in the block. Without its own element, an atom is its edges alone.
        const std::vector<Real> no_embedding(embedding.size());
        const std::vector<Real> all = on_gpu.sum(each.edges(), no_embedding);
        const size_t skipped = 5;
        gpu::StepEdges later = each.edges();
        later.first += skipped;
        later.atom_count -= static_cast<int32_t>(skipped);
        CHECK(on_gpu.sum(later, no_embedding) ==
              std::vector<Real>(all.begin() + static_cast<long>(skipped * row), all.end()));
        Numbers later_gradient = before;
        on_gpu.reverse(later, {gradient_there.begin() + static_cast<long>(skipped * row), gradient_there.end()},
                       later_gradient);
        const auto from = static_cast<long>(3 * each.first[skipped]);
        CHECK(std::equal(later_gradient.begin() + from, later_gradient.end(), vector_gradient.begin() + from));
    }
    painn::gpu::chosen_few_atoms = 512;
}

}  // namespace

TEST_CASE("first messages of many elements, functions and edges") {
    // None, less and more than those that are taken together, for blocks of 16 atoms that are full and not.
    const std::vector<int> counts = {3, 0, 16, 17, 70, 1, 8, 33, 5, 2, 9, 15, 7, 24, 4, 11, 12, 1, 0, 6, 31};
    check_first<float>({32, 20, 12, 9, counts});  // three passes of elements
    check_first<double>({32, 20, 12, 9, counts});
    check_first<float>({64, 31, 6, 4, counts});  // two passes of functions, the second with one group
    check_first<double>({64, 26, 5, 3, counts});
    check_first<float>({128, 64, 7, 5, {40, 3, 0, 9, 18, 2, 21}});  // the most functions
    check_first<double>({128, 64, 7, 5, {40, 3, 0, 9, 18, 2, 21}});
    check_first<float>({256, 3, 118, 100, {12, 0, 30, 1, 2, 19}});  // all elements that there are
    check_first<double>({256, 7, 118, 100, {12, 0, 30, 1, 2, 19}});
    check_first<float>({32, 20, 3, 1, std::vector<int>(7, 0)});  // no edges
    check_first<double>({32, 20, 3, 1, std::vector<int>(7, 0)});
}
