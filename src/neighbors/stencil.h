// SPDX-License-Identifier: MIT
// Which bins around a bin can hold neighbours, and the runs of sorted atoms in them.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "core/host_device.h"
#include "neighbors/cell_grid.h"

namespace mlff {

// Packs three image numbers into 30 bits, each a little beyond +-kMostImages.
MLFF_HOST_DEVICE inline uint32_t pack_image(int q0, int q1, int q2) {
    return static_cast<uint32_t>(q0 + 512) | static_cast<uint32_t>(q1 + 512) << 10 |
           static_cast<uint32_t>(q2 + 512) << 20;
}
MLFF_HOST_DEVICE inline std::array<int32_t, 3> unpack_image(uint32_t image) {
    return {static_cast<int32_t>(image & 1023) - 512, static_cast<int32_t>(image >> 10 & 1023) - 512,
            static_cast<int32_t>(image >> 20) - 512};
}

// The shift between the original positions, for a pair of sites whose sender is moved to this image.
MLFF_HOST_DEVICE inline std::array<int32_t, 3> pair_shift(const Site& receiver, const Site& sender,
                                                          const std::array<int32_t, 3>& image) {
    return {image[0] + receiver.wrap[0] - sender.wrap[0], image[1] + receiver.wrap[1] - sender.wrap[1],
            image[2] + receiver.wrap[2] - sender.wrap[2]};
}

// A half list keeps one direction of each pair: sender > receiver, or an atom's own image whose first non-zero shift is
// > 0.
MLFF_HOST_DEVICE inline bool is_in_half_list(int32_t receiver, int32_t sender, const std::array<int32_t, 3>& image) {
    if (receiver != sender) return sender > receiver;
    return image[0] != 0 ? image[0] > 0 : image[1] != 0 ? image[1] > 0 : image[2] > 0;
}

// Bins b + (lowest ... highest, offset1, offset2) can hold neighbours of atoms in bin b.
struct StencilRow {
    int32_t offset1, offset2;
    int32_t lowest, highest;
};

void make_stencil(const CellGrid& grid, std::vector<StencilRow>& stencil);

// Sorted atoms begin ... end - 1, in one image.
struct CandidateRun {
    int32_t begin, end;
    uint32_t image;
};

struct ImageBin {
    int image, bin;
};
// Splits bin = image * count + remainder. Most calls need no division.
MLFF_HOST_DEVICE inline ImageBin split_bin(int bin, int count) {
    if (bin >= 0 && bin < count) return {0, bin};
    const int image = bin >= 0 ? bin / count : -((count - 1 - bin) / count);
    return {image, bin - image * count};
}

// Sorted atoms by bin.
struct BinnedAtoms {
    std::array<int32_t, 3> bin_count;
    std::array<bool, 3> periodic;
    const int32_t* first_in_bin;  // [bins + 1]
};

// Adjacent bins of one row.
struct BinRange {
    int first0, last0;  // along direction 0
    int bin1, bin2;
};
MLFF_HOST_DEVICE inline BinRange bin_range(const BinnedAtoms& atoms, int first_bin, int last_bin) {
    const int row = first_bin / atoms.bin_count[0];
    const int begin = row * atoms.bin_count[0];
    return {first_bin - begin, last_bin - begin, row % atoms.bin_count[1], row / atoms.bin_count[1]};
}

// Iterates over the runs of atoms in one row of the stencil around some bins, image by image. A bin outside the cell is
// split into an image number and a bin, so any number of images is handled the same way.
class RunCursor {
public:
    MLFF_HOST_DEVICE RunCursor(const BinnedAtoms& atoms, const BinRange& around, const StencilRow& row)
        : count_(atoms.bin_count[0]), from_(around.first0 + row.lowest), to_(around.last0 + row.highest) {
        const ImageBin along1 = split_bin(around.bin1 + row.offset1, atoms.bin_count[1]);
        const ImageBin along2 = split_bin(around.bin2 + row.offset2, atoms.bin_count[2]);
        image1_ = along1.image;
        image2_ = along2.image;
        first_ = atoms.first_in_bin + (along2.bin * atoms.bin_count[1] + along1.bin) * count_;
        if (!atoms.periodic[0]) {
            from_ = std::max(from_, 0);
            to_ = std::min(to_, count_ - 1);
        }
        if ((image1_ != 0 && !atoms.periodic[1]) || (image2_ != 0 && !atoms.periodic[2])) to_ = from_ - 1;
    }

    // The next non-empty run; false if there are no more.
    MLFF_HOST_DEVICE bool next(CandidateRun& run) {
        while (from_ <= to_) {
            const ImageBin along0 = split_bin(from_, count_);
            const int stop = std::min(to_ - along0.image * count_, count_ - 1) + 1;
            from_ = (along0.image + 1) * count_;
            run = {first_[along0.bin], first_[stop], pack_image(along0.image, image1_, image2_)};
            if (run.begin < run.end) return true;
        }
        return false;
    }

private:
    const int32_t* first_;
    int count_, from_, to_, image1_, image2_;
};

}  // namespace mlff
