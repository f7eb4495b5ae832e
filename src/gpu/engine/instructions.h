// SPDX-License-Identifier: MIT
// Instructions that have no function in CUDA C++. For CUDA sources only.
//
// In the matrix products below the lanes of a warp are numbered 4 g + q.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace mlff::gpu {

// 16 rows times 8 columns over a depth of 8, in TF32.
//   rows:     a0 is row g at depth q,  a1 row g + 8 at depth q,  a2 row g at q + 4,  a3 row g + 8 at q + 4
//   columns:  b0 is column g at depth q,  b1 column g at q + 4
//   sums:     sum[0], sum[1] are row g,  sum[2], sum[3] row g + 8,  of columns 2 q and 2 q + 1
__device__ __forceinline__ void mma_tf32(float (&sum)[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3,
                                         uint32_t b0, uint32_t b1) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// 16 rows times 8 columns over a depth of 16, in half precision. An operand is two numbers, at depths 2 q and 2 q + 1,
// or 2 q + 8 and 2 q + 9.
//   rows:     a.x is row g at 2 q,  a.y row g + 8 at 2 q,  a.z row g at 2 q + 8,  a.w row g + 8 at 2 q + 8
//   columns:  b0 is column g at 2 q,  b1 column g at 2 q + 8
//   sums:     sum is row g,  sum_below row g + 8,  of columns 2 q and 2 q + 1
__device__ __forceinline__ void mma_f16(float (&sum)[2], float (&sum_below)[2], const uint4& a, uint32_t b0,
                                        uint32_t b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum_below[0]), "+f"(sum_below[1])
        : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1));
}

__device__ __forceinline__ void mma_f16(float (&sum)[4], const uint4& a, uint32_t b0, uint32_t b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1));
}

// The same over a depth of 8: a0 is row g, a1 row g + 8 and b column g, at depths 2 q and 2 q + 1.
__device__ __forceinline__ void mma_f16(float (&sum)[2], float (&sum_below)[2], uint32_t a0, uint32_t a1, uint32_t b) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum_below[0]), "+f"(sum_below[1])
        : "r"(a0), "r"(a1), "r"(b));
}

// 8 rows times 8 columns over a depth of 4, in double precision: `row` is row g at depth q, `column` is column g at
// depth q, and the sums are those of row g and columns 2 q and 2 q + 1.
__device__ __forceinline__ void mma_f64(double& sum0, double& sum1, double row, double column) {
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
        : "+d"(sum0), "+d"(sum1)
        : "d"(row), "d"(column));
}

// Two numbers as halves, `low` in the low bits. Numbers that are too large become infinite.
__device__ __forceinline__ uint32_t pair_of_halves(float low, float high) {
    uint32_t pair;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}

// These loads are volatile. Otherwise the compiler moves each load to the first use of its numbers, and the loads no
// longer overlap.
__device__ __forceinline__ uint4 load_bytes(const void* from) {
    uint4 bytes;
    asm volatile("ld.global.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(bytes.x), "=r"(bytes.y), "=r"(bytes.z), "=r"(bytes.w)
                 : "l"(from));
    return bytes;
}
__device__ __forceinline__ void load_two(const double* from, double& first, double& second) {
    asm volatile("ld.global.v2.f64 {%0,%1}, [%2];" : "=d"(first), "=d"(second) : "l"(from));
}

// Prefetches the cache line that holds `address` into the first-level cache.
__device__ __forceinline__ void prefetch_line(const void* address) {
    asm volatile("prefetch.global.L1 [%0];" ::"l"(address));
}

// Asynchronous copies from global to shared memory. start_copy() copies `bytes` bytes, at most 16, and fills up to 16
// with zeros. end_copies() makes a group of the copies since the last call. wait_for_copies() waits until at most
// `Pending` groups of the thread are unfinished.
__device__ __forceinline__ void start_copy(void* to_shared, const void* from, int bytes) {
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(
                     static_cast<uint32_t>(__cvta_generic_to_shared(to_shared))),
                 "l"(from), "r"(bytes)
                 : "memory");
}
__device__ __forceinline__ void end_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int Pending>
__device__ __forceinline__ void wait_for_copies() {
    asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
}

// Bits of `a` where `mask` is set, bits of `b` elsewhere. With `?:` the compiler makes branches if many conditions
// depend on the lane.
__device__ __forceinline__ float choose_by_mask(uint32_t mask, float a, float b) {
    uint32_t bits;
    asm("lop3.b32 %0, %1, %2, %3, 0xca;" : "=r"(bits) : "r"(mask), "r"(__float_as_uint(a)), "r"(__float_as_uint(b)));
    return __uint_as_float(bits);
}

// The same number, of which the compiler knows nothing: what follows from it is not what it has computed before.
__device__ __forceinline__ int opaque(int number) {
    asm volatile("" : "+r"(number));
    return number;
}

// Shared memory whose size is chosen at launch.
__device__ __forceinline__ unsigned char* launched_shared_memory() {
    extern __shared__ __align__(128) unsigned char launched_shared_bytes[];
    return launched_shared_bytes;
}

}  // namespace mlff::gpu
