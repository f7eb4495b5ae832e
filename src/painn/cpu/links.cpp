// SPDX-License-Identifier: MIT
#include "painn/cpu/links.h"

namespace mlff::painn::cpu {
namespace {

// With so many atoms in a group, a strip of all that they send and receive stays in the second-level cache.
constexpr int64_t kMostAtomsOfGroup = 256;

// True for exactly one of an edge and its reverse. Their vectors are exact negatives of each other.
bool stands_for_both(const Edges& edges, int64_t receiver, int64_t edge) {
    if (edges.sender[edge] != receiver) return edges.sender[edge] > receiver;
    const double* vector = edges.vector + 3 * edge;
    for (int c = 0; c < 2; ++c)
        if (vector[c] != 0) return vector[c] > 0;
    return vector[2] > 0;
}

template <class Real>
kernels::PainnLink<Real> link_of(const Edges& edges, int64_t edge, const kernels::SplineShares<Real>& shares,
                                 const Real* direction) {
    kernels::PainnLink<Real> link;
    std::copy_n(shares.value, kernels::kSplineOrder, link.factors + kernels::kLinkValue);
    std::copy_n(shares.slope, kernels::kSplineOrder, link.factors + kernels::kLinkSlope);
    std::copy_n(direction, 3, link.factors + kernels::kLinkDirection);
    link.interval = shares.interval;
    link.edge = edge;
    link.atom = edges.sender[edge];
    return link;
}

}  // namespace

template <class Real>
void Links<Real>::start(const Edges& edges, int64_t grouped_count) {
    atom_count_ = grouped_count;
    const int64_t groups = std::max<int64_t>(1, (atom_count_ + kMostAtomsOfGroup - 1) / kMostAtomsOfGroup);
    group_size_ = std::max<int64_t>(1, (atom_count_ + groups - 1) / groups);
    links_.resize_discard(static_cast<size_t>(edges.edge_count));
    counts_.resize_discard(static_cast<size_t>(atom_count_));
}

template <class Real>
void Links<Real>::find(const Edges& edges, AtomRange atoms, const kernels::SplineShares<Real>* shares,
                       const Real* directions) {
    for (int64_t atom = atoms.begin; atom < atoms.end; ++atom) {
        const AtomRange near = group(atom / group_size_);
        kernels::PainnLink<Real>*begin = links_.data() + edges.first[atom], *end = begin;
        const auto add_where = [&](const auto& condition) {
            for (int64_t edge = edges.first[atom]; edge < edges.first[atom + 1]; ++edge) {
                const bool is_near = edges.sender[edge] >= near.begin && edges.sender[edge] < near.end;
                if (condition(edge, is_near)) *end++ = link_of(edges, edge, shares[edge], directions + 3 * edge);
            }
            return static_cast<int32_t>(end - begin);
        };
        kernels::PainnLinkCount& count = counts_[static_cast<size_t>(atom)];
        count.both_ways =
            add_where([&](int64_t edge, bool is_near) { return is_near && stands_for_both(edges, atom, edge); });
        count.all = add_where([](int64_t, bool is_near) { return !is_near; });
    }
}

template class Links<float>;
template class Links<double>;

}  // namespace mlff::painn::cpu
