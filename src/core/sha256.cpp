// SPDX-License-Identifier: MIT
#include "core/sha256.h"

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

// Some versions of clang declare the SHA intrinsics only if all code is compiled for them.
#if defined(__aarch64__) && !defined(__clang__)
#define MLFF_SHA256_ARMV8
#include <arm_neon.h>
#include <sys/auxv.h>
#elif defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace mlff {
namespace {

using State = std::array<uint32_t, 8>;
using CompressBlocks = void (*)(State& state, const uint8_t* blocks, size_t block_count);

alignas(16) constexpr uint32_t kRound[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

void compress_portable(State& state, const uint8_t* blocks, size_t block_count) {
    for (; block_count > 0; --block_count, blocks += 64) {
        uint32_t w[64];
        for (int i = 0; i < 16; ++i)
            w[i] = uint32_t{blocks[4 * i]} << 24 | uint32_t{blocks[4 * i + 1]} << 16 |
                   uint32_t{blocks[4 * i + 2]} << 8 | blocks[4 * i + 3];
        for (int i = 16; i < 64; ++i) {
            const uint32_t s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ (w[i - 15] >> 3);
            const uint32_t s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ (w[i - 2] >> 10);
            w[i] = w[i - 16] + s0 + w[i - 7] + s1;
        }
        auto [a, b, c, d, e, f, g, h] = state;
        for (int i = 0; i < 64; ++i) {
            const uint32_t t1 =
                h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) + ((e & f) ^ (~e & g)) + kRound[i] + w[i];
            const uint32_t t2 = (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
            h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
        }
        const State mixed = {a, b, c, d, e, f, g, h};
        for (size_t i = 0; i < 8; ++i) state[i] += mixed[i];
    }
}

#if defined(MLFF_SHA256_ARMV8)

__attribute__((target("+crypto"))) void compress_armv8(State& state, const uint8_t* blocks, size_t block_count) {
    uint32x4_t abcd = vld1q_u32(&state[0]), efgh = vld1q_u32(&state[4]);
    for (; block_count > 0; --block_count, blocks += 64) {
        uint32x4_t w[4];
        for (int i = 0; i < 4; ++i) w[i] = vreinterpretq_u32_u8(vrev32q_u8(vld1q_u8(blocks + 16 * i)));
        const uint32x4_t abcd_before = abcd, efgh_before = efgh;
        for (int i = 0; i < 16; ++i) {  // four rounds at a time; w[i % 4] holds their words
            const uint32x4_t sum = vaddq_u32(w[i % 4], vld1q_u32(kRound + 4 * i));
            const uint32x4_t abcd_old = abcd;
            abcd = vsha256hq_u32(abcd, efgh, sum);
            efgh = vsha256h2q_u32(efgh, abcd_old, sum);
            if (i < 12)
                w[i % 4] = vsha256su1q_u32(vsha256su0q_u32(w[i % 4], w[(i + 1) % 4]), w[(i + 2) % 4], w[(i + 3) % 4]);
        }
        abcd = vaddq_u32(abcd, abcd_before);
        efgh = vaddq_u32(efgh, efgh_before);
    }
    vst1q_u32(&state[0], abcd);
    vst1q_u32(&state[4], efgh);
}

CompressBlocks best_compress() {
    constexpr unsigned long kSha2 = 1ul << 6;  // HWCAP_SHA2
    return getauxval(AT_HWCAP) & kSha2 ? compress_armv8 : compress_portable;
}

#elif defined(__x86_64__)

__attribute__((target("sha,sse4.1,ssse3"))) void compress_sha_ni(State& state, const uint8_t* blocks,
                                                                 size_t block_count) {
    const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0bll, 0x0405060700010203ll);
    // The instructions need the state in the order ABEF and CDGH.
    __m128i dcba = _mm_loadu_si128(reinterpret_cast<const __m128i*>(&state[0]));
    __m128i hgfe = _mm_loadu_si128(reinterpret_cast<const __m128i*>(&state[4]));
    const __m128i cdab = _mm_shuffle_epi32(dcba, 0xb1), efgh = _mm_shuffle_epi32(hgfe, 0x1b);
    __m128i abef = _mm_alignr_epi8(cdab, efgh, 8), cdgh = _mm_blend_epi16(efgh, cdab, 0xf0);
    for (; block_count > 0; --block_count, blocks += 64) {
        __m128i w[4];
        for (int i = 0; i < 4; ++i)
            w[i] = _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(blocks + 16 * i)), swap);
        const __m128i abef_before = abef, cdgh_before = cdgh;
        for (int i = 0; i < 16; ++i) {
            const __m128i sum =
                _mm_add_epi32(w[i % 4], _mm_load_si128(reinterpret_cast<const __m128i*>(kRound + 4 * i)));
            cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
            abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
            if (i < 12) {
                const __m128i middle = _mm_alignr_epi8(w[(i + 3) % 4], w[(i + 2) % 4], 4);
                const __m128i partial = _mm_add_epi32(_mm_sha256msg1_epu32(w[i % 4], w[(i + 1) % 4]), middle);
                w[i % 4] = _mm_sha256msg2_epu32(partial, w[(i + 3) % 4]);
            }
        }
        abef = _mm_add_epi32(abef, abef_before);
        cdgh = _mm_add_epi32(cdgh, cdgh_before);
    }
    const __m128i feba = _mm_shuffle_epi32(abef, 0x1b), dchg = _mm_shuffle_epi32(cdgh, 0xb1);
    dcba = _mm_blend_epi16(feba, dchg, 0xf0);
    hgfe = _mm_alignr_epi8(dchg, feba, 8);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(&state[0]), dcba);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(&state[4]), hgfe);
}

CompressBlocks best_compress() {
    unsigned a = 0, b = 0, c = 0, d = 0;
    const bool has_sha = __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & (1u << 29));
    return has_sha && __builtin_cpu_supports("sse4.1") ? compress_sha_ni : compress_portable;
}

#else

CompressBlocks best_compress() { return compress_portable; }

#endif

std::string digest(Bytes bytes, CompressBlocks compress) {
    State state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
    compress(state, data, bytes.size() / 64);

    uint8_t tail[128] = {};  // the rest, a one bit, zeros, and the length in bits
    const size_t rest = bytes.size() % 64;
    if (rest > 0) std::memcpy(tail, data + (bytes.size() - rest), rest);
    tail[rest] = 0x80;
    const size_t tail_size = rest < 56 ? 64 : 128;
    const uint64_t bit_count = uint64_t{bytes.size()} * 8;
    for (size_t i = 0; i < 8; ++i) tail[tail_size - 1 - i] = static_cast<uint8_t>(bit_count >> (8 * i));
    compress(state, tail, tail_size / 64);

    std::string hex;
    for (uint32_t word : state)
        for (int shift = 28; shift >= 0; shift -= 4) hex.push_back("0123456789abcdef"[(word >> shift) & 15]);
    return hex;
}

}  // namespace

std::string sha256_hex(Bytes bytes) {
    static const CompressBlocks compress = best_compress();
    return digest(bytes, compress);
}

std::string sha256_hex_portable(Bytes bytes) { return digest(bytes, compress_portable); }

}  // namespace mlff
