// SPDX-License-Identifier: MIT
#include "mace/cpu/readout_plan.h"

#include <algorithm>

#include "equivariant/activation.h"
#include "mace/functions/readout_columns.h"

namespace mlff::mace::cpu {
namespace {

// The index of scalar i in the layout.
int place_in_row(const RowLayout& layout, int i) {
    size_t block = 0;
    while (i >= layout.blocks[block].copies) i -= layout.blocks[block++].copies;
    return layout.blocks[block].offset + i;
}

void apply_map(const KernelTable<double>& kernels, const LinearMap<double>& map, const Linear& linear,
               const RowLayout& out_layout, const double* in, int in_size, int atom_count, Buffer<double>& out) {
    out.resize_discard(static_cast<size_t>(atom_count * out_layout.size));
    map.apply(kernels, 0, {in, in_size}, {out.data(), out_layout.size}, atom_count, false);
    for (int atom = 0; atom < atom_count; ++atom)
        for (size_t i = 0; i < linear.bias.size(); ++i)
            out[static_cast<size_t>(atom * out_layout.size + place_in_row(out_layout, static_cast<int>(i)))] +=
                linear.bias[i];
}

}  // namespace

template <class Real>
ReadoutPlan<Real>::ReadoutPlan(const Readout& readout, int head, const RowLayout& features)
    : readout_(readout),
      feature_size_(features.size),
      out_layout_((readout.last ? *readout.last : readout.first).out),
      column_(place_in_row(out_layout_, column_of(readout, head))),
      first_(readout.first, features, RowLayout(readout.first.out)) {
    if (!readout.last) return;
    first_hidden_ = hidden_of(readout.first, head);
    const Hidden* below = &first_hidden_;
    if (readout.middle) {
        middle_hidden_ = hidden_of(*readout.middle, head);
        middle_.emplace(*readout.middle, first_hidden_.layout, middle_hidden_.layout);
        below = &middle_hidden_;
    }
    last_.emplace(*readout.last, below->layout, out_layout_);
}

template <class Real>
typename ReadoutPlan<Real>::Hidden ReadoutPlan<Real>::hidden_of(const Linear& map, int head) const {
    Hidden hidden = {RowLayout(map.out), {}};
    const int count = map.out.dimension();
    for (int i = 0; i < count; ++i)
        if (!is_masked(readout_, head, static_cast<size_t>(i), static_cast<size_t>(count)))
            hidden.active.push_back(place_in_row(hidden.layout, i));
    return hidden;
}

template <class Real>
void ReadoutPlan<Real>::activate(const Hidden& hidden, int number, int atom_count, Scratch& scratch) const {
    const Buffer<double>& before = scratch.before[static_cast<size_t>(number)];
    Buffer<double>& after = scratch.after[static_cast<size_t>(number)];
    after.resize_discard(before.size());
    std::fill(after.begin(), after.end(), 0.0);
    for (int atom = 0; atom < atom_count; ++atom)
        for (const int i : hidden.active) {
            const auto at = static_cast<size_t>(atom * hidden.layout.size + i);
            after[at] = mlff::activate(readout_.activation, before[at]);
        }
}

template <class Real>
void ReadoutPlan<Real>::reverse_activation(const Hidden& hidden, int number, int atom_count, Scratch& scratch,
                                           Buffer<double>& gradient) const {
    const Buffer<double>& before = scratch.before[static_cast<size_t>(number)];
    Buffer<double>& slopes = scratch.after[static_cast<size_t>(number)];
    std::fill(slopes.begin(), slopes.end(), 0.0);
    for (int atom = 0; atom < atom_count; ++atom)
        for (const int i : hidden.active) {
            const auto at = static_cast<size_t>(atom * hidden.layout.size + i);
            slopes[at] = activation_slope(readout_.activation, before[at]);
        }
    for (size_t i = 0; i < gradient.size(); ++i) gradient[i] *= slopes[i];
}

template <class Real>
void ReadoutPlan<Real>::compute_hidden(const KernelTable<double>& kernels, AtomRows<const Real> features,
                                       int atom_count, Scratch& scratch) const {
    scratch.features.resize_discard(static_cast<size_t>(atom_count * feature_size_));
    for (int atom = 0; atom < atom_count; ++atom)
        std::copy_n(features[atom], feature_size_, scratch.features.data() + atom * feature_size_);
    if (!readout_.last)
        return apply_map(kernels, first_, readout_.first, out_layout_, scratch.features.data(), feature_size_,
                         atom_count, scratch.out);
    apply_map(kernels, first_, readout_.first, first_hidden_.layout, scratch.features.data(), feature_size_, atom_count,
              scratch.before[0]);
    activate(first_hidden_, 0, atom_count, scratch);
    if (!middle_) return;
    apply_map(kernels, *middle_, *readout_.middle, middle_hidden_.layout, scratch.after[0].data(),
              first_hidden_.layout.size, atom_count, scratch.before[1]);
    activate(middle_hidden_, 1, atom_count, scratch);
}

template <class Real>
void ReadoutPlan<Real>::compute(const KernelTable<double>& kernels, AtomRows<const Real> features, int atom_count,
                                Scratch& scratch, double* energies) const {
    compute_hidden(kernels, features, atom_count, scratch);
    if (last_) {
        const Hidden& hidden = middle_ ? middle_hidden_ : first_hidden_;
        apply_map(kernels, *last_, *readout_.last, out_layout_, scratch.after[middle_ ? 1 : 0].data(),
                  hidden.layout.size, atom_count, scratch.out);
    }
    for (int atom = 0; atom < atom_count; ++atom)
        energies[atom] += scratch.out[static_cast<size_t>(atom * out_layout_.size + column_)];
}

template <class Real>
void ReadoutPlan<Real>::reverse(const KernelTable<double>& kernels, AtomRows<const Real> features, int atom_count,
                                double scale, Scratch& scratch, AtomRows<Real> features_gradient) const {
    if (last_) compute_hidden(kernels, features, atom_count, scratch);
    scratch.out.resize_discard(static_cast<size_t>(atom_count * out_layout_.size));
    std::fill(scratch.out.begin(), scratch.out.end(), 0.0);
    for (int atom = 0; atom < atom_count; ++atom)
        scratch.out[static_cast<size_t>(atom * out_layout_.size + column_)] = scale;
    Buffer<double>* gradient = &scratch.out;
    int size = out_layout_.size;
    const auto reverse_map = [&](const LinearMap<double>& map, int in_size, Buffer<double>& to) {
        to.resize_discard(static_cast<size_t>(atom_count * in_size));
        map.apply_transposed(kernels, 0, {gradient->data(), size}, {to.data(), in_size}, atom_count, false);
        gradient = &to;
        size = in_size;
    };
    if (middle_) {
        reverse_map(*last_, middle_hidden_.layout.size, scratch.features);
        reverse_activation(middle_hidden_, 1, atom_count, scratch, *gradient);
        reverse_map(*middle_, first_hidden_.layout.size, scratch.out);
        reverse_activation(first_hidden_, 0, atom_count, scratch, *gradient);
    } else if (last_) {
        reverse_map(*last_, first_hidden_.layout.size, scratch.features);
        reverse_activation(first_hidden_, 0, atom_count, scratch, *gradient);
    }
    reverse_map(first_, feature_size_, scratch.features_gradient);
    for (int atom = 0; atom < atom_count; ++atom) {
        Real* to = features_gradient[atom];
        const double* from = scratch.features_gradient.data() + atom * feature_size_;
        for (int i = 0; i < feature_size_; ++i) to[i] += static_cast<Real>(from[i]);
    }
}

template class ReadoutPlan<float>;
template class ReadoutPlan<double>;

}  // namespace mlff::mace::cpu
