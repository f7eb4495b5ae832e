// SPDX-License-Identifier: MIT
// Weights of the filter as tensor cores take them. For CUDA sources only.
#pragma once

#include <cstddef>
#include <vector>

#include "cuda_engine/radial_product.h"

namespace mlff::painn::cuda {

inline constexpr int kUnitsPerStep = 32 * mlff::cuda::RadialProduct::kWeightPlanes;  // of 16 bytes, for 32 channels of one part

// FilterView<float>::weights from filter_table(), whose functions come to whole steps. `columns`: 3 F.
inline std::vector<uint4> pack_filter(const std::vector<double>& table, int columns, float scale) {
    using namespace mlff::cuda;
    const int width = columns / 3, steps = static_cast<int>(table.size()) / columns / kFunctionsPerStep, slices = width / kChannelsPerSlice;
    std::vector<uint4> packed(static_cast<size_t>(slices * 3 * steps * kUnitsPerStep));
    uint4* to = packed.data();
    for (int slice = 0; slice < slices; ++slice)
        for (int part = 0; part < 3; ++part)
            for (int step = 0; step < steps; ++step, to += kUnitsPerStep)
                for (int lane = 0; lane < 32; ++lane) {
                    const int g = lane / 4, q = lane % 4;
                    float numbers[4][4];
                    for (int i = 0; i < 4; ++i)
                        for (int c = 0; c < 4; ++c) {
                            const int function = kFunctionsPerStep * step + 4 * q + i, column = part * width + kChannelsPerSlice * slice + 4 * g + c;
                            numbers[i][c] = scale * static_cast<float>(table[static_cast<size_t>(function) * static_cast<size_t>(columns) + static_cast<size_t>(column)]);
                        }
                    RadialProduct::store_weights(numbers, to + lane);
                }
    return packed;
}

}  // namespace mlff::painn::cuda
