// SPDX-License-Identifier: MIT
// Random bits without a state (Philox 4x32-10, Salmon et al. 2011).
#pragma once

#include <array>
#include <cstdint>

#include "core/host_device.h"

namespace mlff {

// 128 random bits for a key and a counter.
MLFF_HOST_DEVICE inline std::array<uint32_t, 4> random_bits(uint64_t key, uint64_t counter_high, uint64_t counter_low) {
    constexpr uint64_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
    constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
    std::array<uint32_t, 4> x = {static_cast<uint32_t>(counter_low), static_cast<uint32_t>(counter_low >> 32),
                                 static_cast<uint32_t>(counter_high), static_cast<uint32_t>(counter_high >> 32)};
    auto key0 = static_cast<uint32_t>(key), key1 = static_cast<uint32_t>(key >> 32);
    for (int round = 0; round < 10; ++round) {
        const uint64_t product0 = kMultiplier0 * x[0], product1 = kMultiplier1 * x[2];
        x = {static_cast<uint32_t>(product1 >> 32) ^ x[1] ^ key0, static_cast<uint32_t>(product1),
             static_cast<uint32_t>(product0 >> 32) ^ x[3] ^ key1, static_cast<uint32_t>(product0)};
        key0 += kWeyl0;
        key1 += kWeyl1;
    }
    return x;
}

}  // namespace mlff
