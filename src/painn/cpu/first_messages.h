// SPDX-License-Identifier: MIT
// Messages and mixing of the first block. There phi depends on the element of the sender alone, and vectors are zero.
// So messages, and their mixing, are linear in the moments of an atom's edges (kernels::PainnMoments). With
//   A[element][k][n] = phi[k] weight[k][n] / function_scale(n),  where n = 0 is the bias,
// they are, as sums over elements,
//   s   += sum of A_s scalars[element]
//   v    = sum of A_u vectors[element]
//   U v  = sum of (U A_u) vectors[element]
//   V v  = sum of (V A_u) vectors[element]
#pragma once

#include <vector>

#include "painn/cpu/dense_layer.h"
#include "painn/weights/weights.h"

namespace mlff::painn::cpu {

template <class Real>
class FirstMessages {
public:
    explicit FirstMessages(const Weights& weights);

    // Finds the elements present. Moments have one slot for each of them.
    void find_slots(const std::vector<int>& elements);
    int slot_count() const { return static_cast<int>(present_.size()); }
    const int* slots() const { return slots_.data(); }  // [atom]

    struct Moments {
        Real *scalars, *vectors;  // [slot][atom_stride][stride], [slot][atom_stride][3][stride]
        int stride, atom_stride;
    };
    // Adds to scalars[atom][F], and writes mixed[atom][3][v, U v, V v][F].
    void apply(const kernels::KernelTable<Real>& kernels, const Moments& moments, int atom_count, Rows<Real> scalars,
               Rows<Real> mixed) const;
    // Writes the gradients of the moments from those of the scalars and of `mixed`.
    void reverse(const kernels::KernelTable<Real>& kernels, const Moments& gradients, int atom_count,
                 Rows<const Real> scalars, Rows<const Real> mixed) const;

    // Of apply() or reverse(), without the moments.
    StageWork work(int atom_count) const {
        StageWork sum;
        for (const int element : present_)
            sum = sum + to_scalars_[static_cast<size_t>(element)].work(atom_count) +
                  to_mixed_[static_cast<size_t>(element)].work(3 * atom_count);
        return sum;
    }

private:
    std::vector<DenseLayer<Real>> to_scalars_, to_mixed_;  // [element]
    std::vector<int> present_;                             // [slot]: element
    std::vector<int> element_slots_, slots_;               // [element], -1: absent; [atom]
};

}  // namespace mlff::painn::cpu
