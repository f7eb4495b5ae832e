// SPDX-License-Identifier: MIT
// A readout: energies of several atoms from the features of a layer. It is little work, so it is always done in double
// precision.
#pragma once

#include <array>
#include <optional>

#include "equivariant/plan/linear_map.h"
#include "mace/cpu/plan_names.h"
#include "mace/weights/weights.h"

namespace mlff::mace::cpu {

template <class Real>
class ReadoutPlan {
public:
    // Memory of one thread.
    struct Scratch {
        Buffer<double> features, features_gradient;
        std::array<Buffer<double>, 2> before, after;  // the activation of the first and of the middle map
        Buffer<double> out;
    };

    // `features` is the layout of the layer that the readout reads.
    ReadoutPlan(const Readout& readout, int head, const RowLayout& features);

    // energies[i] += column `head` of  last(mask(f(middle(mask(f(first(h)))))));  first(h) alone for a linear readout.
    void compute(const KernelTable<double>& kernels, AtomRows<const Real> features, int atom_count, Scratch& scratch,
                 double* energies) const;
    // features_gradient[i] += scale * d energy / d features
    void reverse(const KernelTable<double>& kernels, AtomRows<const Real> features, int atom_count, double scale,
                 Scratch& scratch, AtomRows<Real> features_gradient) const;

private:
    struct Hidden {
        RowLayout layout;
        std::vector<int> active;  // indices of the numbers that the head uses
    };
    Hidden hidden_of(const Linear& map, int head) const;
    void compute_hidden(const KernelTable<double>& kernels, AtomRows<const Real> features, int atom_count,
                        Scratch& scratch) const;
    void activate(const Hidden& hidden, int number, int atom_count, Scratch& scratch) const;
    void reverse_activation(const Hidden& hidden, int number, int atom_count, Scratch& scratch,
                            Buffer<double>& gradient) const;

    const Readout& readout_;
    int feature_size_ = 0;
    RowLayout out_layout_;
    int column_ = 0;  // of the head in the output
    LinearMap<double> first_;
    std::optional<LinearMap<double>> middle_, last_;
    Hidden first_hidden_, middle_hidden_;
};

}  // namespace mlff::mace::cpu
