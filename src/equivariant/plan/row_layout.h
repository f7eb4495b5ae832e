// SPDX-License-Identifier: MIT
// The layout of features on the CPU and the GPU: for each block of irreps and each component, one padded row of
// channels.
#pragma once

#include <vector>

#include "core/error.h"
#include "equivariant/irreps.h"
#include "equivariant/plan/kernel_table.h"

namespace mlff::equivariant {

struct RowBlock {
    int copies = 0;
    int components = 0;
    int stride = 0;  // from component to component: padded(copies)
    int offset = 0;
};

struct RowLayout {
    std::vector<RowBlock> blocks;
    int size = 0;

    RowLayout() = default;
    explicit RowLayout(const Irreps& irreps) {
        for (const IrrepBlock& block : irreps.blocks()) {
            const int stride = padded(block.multiplicity);
            blocks.push_back({block.multiplicity, block.irrep.dimension(), stride, size});
            size += stride * block.irrep.dimension();
        }
    }
};

// A block of a layout that is part of a block of irreps, and begins at copy `first_copy` of it.
struct RowPiece {
    RowBlock block;
    int first_copy = 0;
};

// For each block of irreps, the blocks of the layout that make it up.
inline std::vector<std::vector<RowPiece>> match_blocks(const Irreps& irreps, const RowLayout& layout) {
    std::vector<std::vector<RowPiece>> pieces;
    size_t next = 0;
    for (const IrrepBlock& block : irreps.blocks()) {
        pieces.emplace_back();
        int copies = 0;
        while (copies < block.multiplicity) {
            if (next >= layout.blocks.size() || layout.blocks[next].components != block.irrep.dimension())
                fail(Status::unsupported, "a linear map from or to ", irreps.text(),
                     " does not fit the features it is given");
            pieces.back().push_back({layout.blocks[next], copies});
            copies += layout.blocks[next++].copies;
        }
        if (copies != block.multiplicity)
            fail(Status::unsupported, "a linear map from or to ", irreps.text(), " cuts through a block of features");
    }
    return pieces;
}

// Converts from [copy][component] of the irreps to [component][copy] of the layout.
template <class Real>
void to_rows(const Irreps& irreps, const RowLayout& layout, const double* features, Real* rows) {
    for (size_t b = 0; b < layout.blocks.size(); ++b) {
        const RowBlock& block = layout.blocks[b];
        const double* from = features + irreps[static_cast<int>(b)].offset;
        for (int m = 0; m < block.components; ++m)
            for (int u = 0; u < block.stride; ++u)
                rows[block.offset + m * block.stride + u] =
                    u < block.copies ? static_cast<Real>(from[u * block.components + m]) : Real(0);
    }
}

}  // namespace mlff::equivariant
