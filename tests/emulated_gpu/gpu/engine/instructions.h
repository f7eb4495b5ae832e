// SPDX-License-Identifier: MIT
// src/gpu/engine/instructions.h for the emulated GPU. Operands are rounded as tensor cores take them, so that mistakes
// in splitting numbers show.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstring>

namespace mlff::gpu {

inline float as_tf32(uint32_t bits) { return __uint_as_float(bits & 0xffffe000u); }

inline void mma_tf32(float (&sum)[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0, uint32_t b1) {
    struct Operands {
        uint32_t a[4], b[2];
    };
    const int g = emulated::current % 32 / 4, q = emulated::current % 4;
    emulated::exchange_in_warp(Operands{{a0, a1, a2, a3}, {b0, b1}}, [&](const auto& of) {
        for (int i = 0; i < 4; ++i) {
            const int row = i / 2, column = 2 * q + i % 2;
            float product = 0;
            for (int depth = 0; depth < 8; ++depth)
                product += as_tf32(of(4 * g + depth % 4).a[row + 2 * (depth / 4)]) *
                           as_tf32(of(4 * column + depth % 4).b[depth / 4]);
            sum[i] += product;
        }
        return 0;
    });
}

inline float half_of(uint32_t pair, int which) { return __half2float({static_cast<uint16_t>(pair >> 16 * which)}); }
inline void mma_f16(float (&sum)[2], float (&sum_below)[2], const uint4& a, uint32_t b0, uint32_t b1) {
    struct Operands {
        uint32_t a[4], b[2];
    };
    const int g = emulated::current % 32 / 4, q = emulated::current % 4;
    emulated::exchange_in_warp(Operands{{a.x, a.y, a.z, a.w}, {b0, b1}}, [&](const auto& of) {
        for (int i = 0; i < 4; ++i) {
            const int is_below = i / 2, column = 2 * q + i % 2;
            float product = 0;
            for (int depth = 0; depth < 16; ++depth)
                product += half_of(of(4 * g + depth % 8 / 2).a[is_below + 2 * (depth / 8)], depth % 2) *
                           half_of(of(4 * column + depth % 8 / 2).b[depth / 8], depth % 2);
            (is_below ? sum_below : sum)[i % 2] += product;
        }
        return 0;
    });
}

inline void mma_f16(float (&sum)[4], const uint4& a, uint32_t b0, uint32_t b1) {
    float top[2] = {sum[0], sum[1]}, bottom[2] = {sum[2], sum[3]};
    mma_f16(top, bottom, a, b0, b1);
    for (int i = 0; i < 2; ++i) {
        sum[i] = top[i];
        sum[2 + i] = bottom[i];
    }
}

inline void mma_f16(float (&sum)[2], float (&sum_below)[2], uint32_t a0, uint32_t a1, uint32_t b) {
    mma_f16(sum, sum_below, make_uint4(a0, a1, 0, 0), b, 0);
}

inline void mma_f64(double& sum0, double& sum1, double row, double column) {
    struct Operands {
        double row, column;
    };
    const int g = emulated::current % 32 / 4, q = emulated::current % 4;
    emulated::exchange_in_warp(Operands{row, column}, [&](const auto& of) {
        for (int depth = 0; depth < 4; ++depth) {
            sum0 += of(4 * g + depth).row * of(4 * (2 * q) + depth).column;
            sum1 += of(4 * g + depth).row * of(4 * (2 * q + 1) + depth).column;
        }
        return 0;
    });
}

inline uint32_t pair_of_halves(float low, float high) {
    return __float2half_rn(low).bits | static_cast<uint32_t>(__float2half_rn(high).bits) << 16;
}

inline uint4 load_bytes(const void* from) {
    if (reinterpret_cast<uintptr_t>(from) % 16 != 0) std::abort();
    return *static_cast<const uint4*>(from);
}
inline void load_two(const double* from, double& first, double& second) {
    if (reinterpret_cast<uintptr_t>(from) % 16 != 0) std::abort();
    first = from[0];
    second = from[1];
}

inline void start_copy(void* to_shared, const void* from, int bytes) {
    std::memset(to_shared, 0, 16);
    std::memcpy(to_shared, from, static_cast<size_t>(bytes));
}
inline void end_copies() {}
template <int Pending>
void wait_for_copies() {}

inline void prefetch_line(const void*) {}
inline float choose_by_mask(uint32_t mask, float a, float b) {
    return __uint_as_float((mask & __float_as_uint(a)) | (~mask & __float_as_uint(b)));
}
inline int opaque(int number) { return number; }

inline unsigned char* launched_shared_memory() {
    return emulated::shared_memory[emulated::current / emulated::block_size];
}

}  // namespace mlff::gpu
