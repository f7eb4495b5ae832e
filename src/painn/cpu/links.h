// SPDX-License-Identifier: MIT
// The edges along which messages pass (kernels::PainnLink). Atoms are divided into groups. An edge between atoms of one
// group stands for its reverse too; edges between groups stand for themselves only.
#pragma once

#include <algorithm>

#include "core/buffer.h"
#include "cpu_kernels/kernel_table.h"
#include "neighbors/neighbor_list.h"

namespace mlff::painn::cpu {

// The atoms `begin` to `end`.
struct AtomRange {
    int64_t begin = 0, end = 0;

    int count() const { return static_cast<int>(end - begin); }
};

template <class Real>
class Links {
public:
    // Allocates memory, and chooses the groups; they depend on the number of atoms alone. Atoms from `grouped_count` on
    // receive nothing and are in no group.
    void start(const Edges& edges, int64_t grouped_count);
    // Makes the links of these atoms from shares[edge] and directions[edge][3].
    void find(const Edges& edges, AtomRange atoms, const kernels::SplineShares<Real>* shares, const Real* directions);

    int64_t group_count() const { return (atom_count_ + group_size_ - 1) / group_size_; }
    AtomRange group(int64_t number) const {
        return {number * group_size_, std::min((number + 1) * group_size_, atom_count_)};
    }

    const kernels::PainnLink<Real>* links() const { return links_.data(); }   // an atom's begin at its first edge
    const kernels::PainnLinkCount* counts() const { return counts_.data(); }  // [atom]

private:
    int64_t atom_count_ = 0, group_size_ = 1;
    Buffer<kernels::PainnLink<Real>> links_;
    Buffer<kernels::PainnLinkCount> counts_;
};

}  // namespace mlff::painn::cpu
