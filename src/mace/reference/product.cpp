// SPDX-License-Identifier: MIT
#include "mace/reference/product.h"

#include "core/parallel.h"
#include "equivariant/linear.h"
#include "mace/reference/contraction.h"

namespace mlff::mace::reference {
namespace {

size_t size_of(const Irreps& irreps) { return static_cast<size_t>(irreps.dimension()); }

const Linear* skip_of(const Layer& layer) {
    return layer.uses_skip && layer.interaction.skip ? &*layer.interaction.skip : nullptr;
}

}  // namespace

void compute_product(const Layer& layer, const std::vector<int>& elements, const double* basis, const double* features,
                     std::vector<double>& new_features, ThreadTeam& team) {
    const size_t out_size = size_of(layer.linear.out);
    const Linear* skip = skip_of(layer);
    new_features.resize(elements.size() * out_size);
    for_each_atom(team, static_cast<int64_t>(elements.size()), [&](int64_t atom) {
        const auto a = static_cast<size_t>(atom);
        std::vector<double> product(size_of(layer.contraction.out));
        compute_contraction(layer.contraction, elements[a], basis + a * size_of(layer.contraction.in), product.data());
        double* out = new_features.data() + a * out_size;
        compute_linear(layer.linear, elements[a], product.data(), out);
        if (skip) {
            std::vector<double> skipped(out_size);
            compute_linear(*skip, elements[a], features + a * size_of(skip->in), skipped.data());
            for (size_t i = 0; i < out_size; ++i) out[i] += skipped[i];
        }
    });
}

void reverse_product(const Layer& layer, const std::vector<int>& elements, const double* basis,
                     const double* new_features_gradient, std::vector<double>& basis_gradient,
                     double* features_gradient, ThreadTeam& team) {
    const size_t basis_size = size_of(layer.contraction.in);
    const Linear* skip = skip_of(layer);
    basis_gradient.resize(elements.size() * basis_size);
    for_each_atom(team, static_cast<int64_t>(elements.size()), [&](int64_t atom) {
        const auto a = static_cast<size_t>(atom);
        const double* gradient = new_features_gradient + a * size_of(layer.linear.out);
        std::vector<double> product_gradient(size_of(layer.contraction.out), 0.0);
        reverse_linear(layer.linear, elements[a], gradient, product_gradient.data());
        reverse_contraction(layer.contraction, elements[a], basis + a * basis_size, product_gradient.data(),
                            basis_gradient.data() + a * basis_size);
        if (skip && features_gradient)
            reverse_linear(*skip, elements[a], gradient, features_gradient + a * size_of(skip->in));
    });
}

}  // namespace mlff::mace::reference
