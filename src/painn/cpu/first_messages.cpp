// SPDX-License-Identifier: MIT
#include "painn/cpu/first_messages.h"

#include <algorithm>

#include "painn/cpu/filters.h"
#include "painn/functions/dense.h"

namespace mlff::painn::cpu {
namespace {

// weight[k][n] = phi[k] * filter[k][n] / function_scale(n), where filter[k] is the bias, then the weights. Takes F rows
// of the filter, from row `first` on.
Linear filter_of(const Weights& weights, const double* phi, int first) {
    const Linear& filter = weights.blocks[0].filter;
    const int radial_count = filter.in_width, hidden = weights.hidden;
    Linear linear;
    linear.in_width = radial_count + 1;
    linear.out_width = hidden;
    std::vector<double> scales;
    for (int n = 0; n <= radial_count; ++n) scales.push_back(function_scale(weights, n));
    for (int k = first; k < first + hidden; ++k) {
        linear.weight.push_back(phi[k] * filter.bias[static_cast<size_t>(k)] / scales[0]);
        for (int n = 0; n < radial_count; ++n)
            linear.weight.push_back(phi[k] * filter.weight[static_cast<size_t>(k * radial_count + n)] /
                                    scales[static_cast<size_t>(n + 1)]);
    }
    return linear;
}

// The rows of `linear`, followed by those of outer * linear.
Linear with_product(Linear linear, const Linear& outer) {
    const auto depth = static_cast<size_t>(linear.in_width), inner = static_cast<size_t>(outer.in_width);
    linear.out_width += outer.out_width;
    linear.weight.resize(static_cast<size_t>(linear.out_width) * depth, 0.0);
    for (size_t row = 0; row < static_cast<size_t>(outer.out_width); ++row)
        for (size_t k = 0; k < inner; ++k)
            for (size_t n = 0; n < depth; ++n)
                linear.weight[(inner + row) * depth + n] +=
                    outer.weight[row * inner + k] * linear.weight[k * depth + n];
    return linear;
}

}  // namespace

template <class Real>
FirstMessages<Real>::FirstMessages(const Weights& weights) : element_slots_(weights.atomic_numbers.size(), -1) {
    const Block& block = weights.blocks[0];
    const auto width = static_cast<size_t>(weights.hidden);
    std::vector<double> phi(3 * width);
    for (size_t element = 0; element < weights.atomic_numbers.size(); ++element) {
        compute_two_layers(block.message_hidden, block.message_output, &weights.embedding[element * width], phi.data());
        to_scalars_.emplace_back(filter_of(weights, phi.data(), 0));
        to_mixed_.emplace_back(with_product(filter_of(weights, phi.data(), 2 * weights.hidden), block.mix));
    }
    present_.reserve(weights.atomic_numbers.size());
}

template <class Real>
void FirstMessages<Real>::find_slots(const std::vector<int>& elements) {
    std::fill(element_slots_.begin(), element_slots_.end(), -1);
    for (const int element : elements) element_slots_[static_cast<size_t>(element)] = 0;
    present_.clear();
    for (size_t element = 0; element < element_slots_.size(); ++element)
        if (element_slots_[element] == 0) {
            element_slots_[element] = slot_count();
            present_.push_back(static_cast<int>(element));
        }
    slots_.resize(elements.size());
    for (size_t atom = 0; atom < elements.size(); ++atom)
        slots_[atom] = element_slots_[static_cast<size_t>(elements[atom])];
}

template <class Real>
void FirstMessages<Real>::apply(const kernels::KernelTable<Real>& kernels, const Moments& moments, int atom_count,
                                Rows<Real> scalars, Rows<Real> mixed) const {
    const Rows<Real> components = {mixed.first, mixed.stride / 3};
    std::fill_n(mixed.first, atom_count * mixed.stride, Real(0));
    for (int slot = 0; slot < slot_count(); ++slot) {
        const auto element = static_cast<size_t>(present_[static_cast<size_t>(slot)]);
        const int64_t at = int64_t{slot} * moments.atom_stride * moments.stride;
        to_scalars_[element].add(kernels, {moments.scalars + at, moments.stride}, scalars, atom_count);
        to_mixed_[element].add(kernels, {moments.vectors + 3 * at, moments.stride}, components, 3 * atom_count);
    }
}

template <class Real>
void FirstMessages<Real>::reverse(const kernels::KernelTable<Real>& kernels, const Moments& gradients, int atom_count,
                                  Rows<const Real> scalars, Rows<const Real> mixed) const {
    for (int slot = 0; slot < slot_count(); ++slot) {
        const auto element = static_cast<size_t>(present_[static_cast<size_t>(slot)]);
        const int64_t at = int64_t{slot} * gradients.atom_stride * gradients.stride;
        to_scalars_[element].apply_transposed(kernels, scalars, {gradients.scalars + at, gradients.stride}, atom_count,
                                              false);
        to_mixed_[element].apply_transposed(kernels, {mixed.first, mixed.stride / 3},
                                            {gradients.vectors + 3 * at, gradients.stride}, 3 * atom_count, false);
    }
}

template class FirstMessages<float>;
template class FirstMessages<double>;

}  // namespace mlff::painn::cpu
