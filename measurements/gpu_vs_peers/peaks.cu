// SPDX-License-Identifier: MIT
// Rates a GPU reaches in loops that do one thing only, as JSON: bytes or floating-point operations a second, the best
// of a few runs.
//   nvcc -O3 -arch=native -o peaks peaks.cu && ./peaks
//   ./peaks calibrate    runs the two tensor kernels once and prints how many operations each does, to check a
//   profiler's counters
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>

namespace {

constexpr int kThreads = 256, kChains = 8, kRounds = 16384;
constexpr int kRepetitions = 10;

void check(cudaError_t error) {
    if (error == cudaSuccess) return;
    std::fprintf(stderr, "peaks: %s\n", cudaGetErrorString(error));
    std::exit(1);
}

// kChains independent sums in each thread: 2 operations in each of kChains * kRounds steps.
template <typename Real>
__global__ void __launch_bounds__(kThreads) multiply_add_kernel(Real factor, Real* out) {
    Real sum[kChains];
    for (int k = 0; k < kChains; ++k) sum[k] = threadIdx.x + k;
    for (int round = 0; round < kRounds; ++round)
#pragma unroll
        for (int k = 0; k < kChains; ++k) sum[k] = sum[k] * factor + factor;
    Real total = 0;
    for (int k = 0; k < kChains; ++k) total += sum[k];
    if (total == Real(-1)) out[0] = total;  // never so, but the compiler cannot know
}

// One warp multiplies 16x16 (fp16) or 16x8 (TF32) by 16x8 or 8x8 matrices into kChains sums of 16x8.
__global__ void __launch_bounds__(kThreads) fp16_mma_kernel(uint32_t bits, float* out) {
    float sum[kChains][4] = {};
    const uint32_t a = bits + threadIdx.x, b = bits ^ threadIdx.x;
    for (int round = 0; round < kRounds; ++round)
#pragma unroll
        for (int k = 0; k < kChains; ++k)
            asm volatile(
                "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%4,%5}, {%6,%7}, "
                "{%0,%1,%2,%3};"
                : "+f"(sum[k][0]), "+f"(sum[k][1]), "+f"(sum[k][2]), "+f"(sum[k][3])
                : "r"(a), "r"(a + 1), "r"(b), "r"(b + 1));
    float total = 0;
    for (int k = 0; k < kChains; ++k) total += sum[k][0] + sum[k][1] + sum[k][2] + sum[k][3];
    if (total == -1.0f) out[0] = total;
}

__global__ void __launch_bounds__(kThreads) tf32_mma_kernel(uint32_t bits, float* out) {
    float sum[kChains][4] = {};
    const uint32_t a = bits + threadIdx.x, b = bits ^ threadIdx.x;
    for (int round = 0; round < kRounds; ++round)
#pragma unroll
        for (int k = 0; k < kChains; ++k)
            asm volatile(
                "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%4,%5}, {%6,%7}, "
                "{%0,%1,%2,%3};"
                : "+f"(sum[k][0]), "+f"(sum[k][1]), "+f"(sum[k][2]), "+f"(sum[k][3])
                : "r"(a), "r"(a + 1), "r"(b), "r"(b + 1));
    float total = 0;
    for (int k = 0; k < kChains; ++k) total += sum[k][0] + sum[k][1] + sum[k][2] + sum[k][3];
    if (total == -1.0f) out[0] = total;
}

// Every block reads all of `data`, past the first cache, from a place of its own: served by the second cache if it
// holds `data`.
__global__ void __launch_bounds__(kThreads) read_kernel(const float4* data, int count, float* out) {
    float total = 0;
    const int offset = static_cast<int>(static_cast<int64_t>(count) * blockIdx.x / gridDim.x) / kThreads * kThreads;
#pragma unroll 8
    for (int i = threadIdx.x; i < count; i += kThreads) {
        const int at = offset + i < count ? offset + i : offset + i - count;
        const float4 value = __ldcg(data + at);
        total += value.x + value.y + value.z + value.w;
    }
    if (total == -1.0f) out[0] = total;
}

// Seconds of the fastest of a few runs.
double fastest(const std::function<void()>& launch) {
    cudaEvent_t begin, end;
    check(cudaEventCreate(&begin));
    check(cudaEventCreate(&end));
    float best = 1e30f;
    for (int run = 0; run < kRepetitions + 3; ++run) {
        check(cudaEventRecord(begin));
        launch();
        check(cudaEventRecord(end));
        check(cudaEventSynchronize(end));
        check(cudaGetLastError());
        float milliseconds = 0;
        check(cudaEventElapsedTime(&milliseconds, begin, end));
        if (run >= 3) best = std::min(best, milliseconds);
    }
    check(cudaEventDestroy(begin));
    check(cudaEventDestroy(end));
    return best * 1e-3;
}

}  // namespace

int main(int argc, char** argv) {
    cudaDeviceProp device{};
    check(cudaGetDeviceProperties(&device, 0));
    const int blocks = device.multiProcessorCount * 2048 / kThreads;
    float* out = nullptr;
    check(cudaMalloc(&out, 64));
    const double steps = double(blocks) * kThreads * kChains * kRounds;
    const double fp16_mma = steps / 32 * 2 * 16 * 8 * 16, tf32_mma = steps / 32 * 2 * 16 * 8 * 8;
    const uint32_t fp16_ones = 0x3c003c00, tf32_one = 0x3f800000;
    if (argc > 1 && std::strcmp(argv[1], "calibrate") == 0) {
        fp16_mma_kernel<<<blocks, kThreads>>>(fp16_ones, out);
        tf32_mma_kernel<<<blocks, kThreads>>>(tf32_one, out);
        check(cudaDeviceSynchronize());
        std::printf("{\"fp16_mma_kernel\": %.0f, \"tf32_mma_kernel\": %.0f}\n", fp16_mma, tf32_mma);
        return 0;
    }

    const size_t size = size_t{1} << 31;
    char *from = nullptr, *to = nullptr;
    check(cudaMalloc(&from, size));
    check(cudaMalloc(&to, size));
    check(cudaMemset(from, 1, size));
    const double copy = 2.0 * size / fastest([&] { check(cudaMemcpyAsync(to, from, size, cudaMemcpyDeviceToDevice)); });
    // A quarter of the cache: Hopper's has two halves, and each may keep a copy of what its side reads.
    const int cached = device.l2CacheSize / 4 / int(sizeof(float4)) / kThreads * kThreads;
    const double read = 1.0 * blocks * cached * sizeof(float4) / fastest([&] {
                            read_kernel<<<blocks, kThreads>>>(reinterpret_cast<const float4*>(from), cached, out);
                        });
    const double fp32 = 2 * steps / fastest([&] { multiply_add_kernel<float><<<blocks, kThreads>>>(0.999f, out); });
    const double fp64 = 2 * steps / fastest([&] {
                            multiply_add_kernel<double><<<blocks, kThreads>>>(0.999, reinterpret_cast<double*>(out));
                        });
    const double fp16 = fp16_mma / fastest([&] { fp16_mma_kernel<<<blocks, kThreads>>>(fp16_ones, out); });
    const double tf32 = tf32_mma / fastest([&] { tf32_mma_kernel<<<blocks, kThreads>>>(tf32_one, out); });
    std::printf(
        "{\"copy_bytes\": %.4g, \"l2_read_bytes\": %.4g, \"fp32_flop\": %.4g, \"fp64_flop\": %.4g, \"fp16_mma_flop\": "
        "%.4g, "
        "\"tf32_mma_flop\": %.4g, \"multiprocessors\": %d, \"l2_cache_bytes\": %d}\n",
        copy, read, fp32, fp64, fp16, tf32, device.multiProcessorCount, device.l2CacheSize);
    return 0;
}
