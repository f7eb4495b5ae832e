// SPDX-License-Identifier: MIT
// Features of atoms in strips of kRowPadding channels: [strip][atom][row][channel]. What a pass over edges reads from
// an atom is contiguous.
#pragma once

#include <cstring>
#include <span>
#include <vector>

#include "painn/cpu/dense_layer.h"
#include "painn/cpu/links.h"
#include "potential/ghost_rows.h"

namespace mlff::painn::cpu {

template <class Real>
class Strips {
public:
    void resize(int64_t atom_count, int row_count, int hidden) {
        atom_count_ = atom_count;
        row_count_ = row_count;
        strip_count_ = hidden / kernels::kRowPadding;
        numbers_.resize_discard(static_cast<size_t>(atom_count * row_count * hidden));
    }

    Real* strip(int number) { return numbers_.data() + number * atom_count_ * row_count_ * kernels::kRowPadding; }
    const Real* strip(int number) const {
        return numbers_.data() + number * atom_count_ * row_count_ * kernels::kRowPadding;
    }

    // For the exchange between domains: all rows of each atom, strip by strip.
    std::span<const DomainRows> rows() {
        domain_rows_.resize(static_cast<size_t>(strip_count_));
        for (int number = 0; number < strip_count_; ++number)
            domain_rows_[static_cast<size_t>(number)] = {
                strip(number), static_cast<size_t>(row_count_ * kernels::kRowPadding) * sizeof(Real)};
        return domain_rows_;
    }

    // Copy or add `count` rows of each atom, from row `first` on. In `rows` the rows of an atom are contiguous.
    void write(AtomRange atoms, int first, int count, Rows<Real> rows) {
        visit(atoms, first, count, rows,
              [](Real* strip, Real* row) { std::memcpy(strip, row, kernels::kRowPadding * sizeof(Real)); });
    }
    void read(AtomRange atoms, int first, int count, Rows<Real> rows) {
        visit(atoms, first, count, rows,
              [](Real* strip, Real* row) { std::memcpy(row, strip, kernels::kRowPadding * sizeof(Real)); });
    }
    void add_to(AtomRange atoms, int first, int count, Rows<Real> rows) {
        visit(atoms, first, count, rows, [](Real* strip, Real* row) {
            for (int k = 0; k < kernels::kRowPadding; ++k) row[k] += strip[k];
        });
    }

private:
    template <class Work>
    void visit(AtomRange atoms, int first, int count, Rows<Real> rows, const Work& work) {
        for (int number = 0; number < strip_count_; ++number)
            for (int i = 0; i < atoms.count(); ++i)
                for (int row = 0; row < count; ++row)
                    work(strip(number) + ((atoms.begin + i) * row_count_ + first + row) * kernels::kRowPadding,
                         rows[i] + (row * strip_count_ + number) * kernels::kRowPadding);
    }

    int64_t atom_count_ = 0;
    int row_count_ = 0, strip_count_ = 0;
    Buffer<Real> numbers_;
    std::vector<DomainRows> domain_rows_;
};

}  // namespace mlff::painn::cpu
