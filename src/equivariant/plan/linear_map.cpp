// SPDX-License-Identifier: MIT
#include "equivariant/plan/linear_map.h"

#include <algorithm>

namespace mlff::equivariant {

template <class Real>
LinearMap<Real>::LinearMap(const Linear& linear, const RowLayout& in, const RowLayout& out)
    : element_count_(linear.element_count), in_size_(in.size), out_size_(out.size) {
    const auto in_pieces = match_blocks(linear.in, in), out_pieces = match_blocks(linear.out, out);
    size_t size = 0;
    for (const Linear::Path& path : linear.paths)
        for (const RowPiece& from : in_pieces[static_cast<size_t>(path.in_block)])
            for (const RowPiece& to : out_pieces[static_cast<size_t>(path.out_block)]) {
                const size_t forward = static_cast<size_t>(from.block.copies) * static_cast<size_t>(to.block.stride);
                paths_.push_back({from.block, to.block, size, size + forward});
                size += forward + static_cast<size_t>(to.block.copies) * static_cast<size_t>(from.block.stride);
            }
    weights_per_element_ = size;
    weights_.resize_discard(size * static_cast<size_t>(element_count_));
    std::fill(weights_.begin(), weights_.end(), Real(0));
    size_t next = 0;
    for (const Linear::Path& path : linear.paths)
        for (const RowPiece& from : in_pieces[static_cast<size_t>(path.in_block)])
            for (const RowPiece& to : out_pieces[static_cast<size_t>(path.out_block)]) {
                const Path& packed = paths_[next++];
                const auto copies_in = static_cast<size_t>(linear.in[path.in_block].multiplicity);
                const auto copies_out = static_cast<size_t>(linear.out[path.out_block].multiplicity);
                for (size_t z = 0; z < static_cast<size_t>(element_count_); ++z)
                    for (size_t u = 0; u < static_cast<size_t>(from.block.copies); ++u)
                        for (size_t w = 0; w < static_cast<size_t>(to.block.copies); ++w) {
                            const size_t source =
                                (z * copies_in + static_cast<size_t>(from.first_copy) + u) * copies_out +
                                static_cast<size_t>(to.first_copy) + w;
                            const auto weight = static_cast<Real>(path.weight[source]);
                            weights_[z * size + packed.weight +
                                     matrix_index(u, w, static_cast<size_t>(from.block.copies))] = weight;
                            weights_[z * size + packed.transposed +
                                     matrix_index(w, u, static_cast<size_t>(to.block.copies))] = weight;
                        }
            }
}

template <class Real>
template <bool Transposed>
void LinearMap<Real>::run(const KernelTable<Real>& kernels, int element, AtomRows<const Real> in, AtomRows<Real> out,
                          int atom_count, bool accumulate) const {
    constexpr int kMostRows = 256;
    const Real* from[kMostRows];
    Real* to[kMostRows];
    if (!accumulate)
        for (int i = 0; i < atom_count; ++i) std::fill_n(out[i], Transposed ? in_size_ : out_size_, Real(0));
    const Real* weights =
        weights_.data() + static_cast<size_t>(element_count_ > 1 ? element : 0) * weights_per_element_;
    for (const Path& path : paths_) {
        const RowBlock& source = Transposed ? path.out : path.in;
        const RowBlock& target = Transposed ? path.in : path.out;
        int rows = 0;
        const auto flush = [&] {
            kernels.multiply_rows(from, to, rows, weights + (Transposed ? path.transposed : path.weight), source.copies,
                                  target.stride, true);
            rows = 0;
        };
        for (int i = 0; i < atom_count; ++i)
            for (int m = 0; m < source.components; ++m) {
                from[rows] = in[i] + source.offset + m * source.stride;
                to[rows] = out[i] + target.offset + m * target.stride;
                if (++rows == kMostRows) flush();
            }
        if (rows > 0) flush();
    }
}

template <class Real>
void LinearMap<Real>::apply(const KernelTable<Real>& kernels, int element, AtomRows<const Real> in, AtomRows<Real> out,
                            int atom_count, bool accumulate) const {
    run<false>(kernels, element, in, out, atom_count, accumulate);
}

template <class Real>
void LinearMap<Real>::apply_transposed(const KernelTable<Real>& kernels, int element, AtomRows<const Real> out_gradient,
                                       AtomRows<Real> in_gradient, int atom_count, bool accumulate) const {
    run<true>(kernels, element, out_gradient, in_gradient, atom_count, accumulate);
}

template class LinearMap<float>;
template class LinearMap<double>;

}  // namespace mlff::equivariant
