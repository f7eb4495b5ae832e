// SPDX-License-Identifier: MIT
#include "gpu/runtime/gpu_peaks.h"

#include <algorithm>

#include "gpu/runtime/cuda_check.h"
#include "gpu/runtime/cuda_stream.h"
#include "gpu/runtime/device_buffer.h"
#include "gpu/runtime/event_timer.h"

namespace mlff {
namespace {

constexpr int kThreads = 256, kChains = 8, kRounds = 2048, kTrials = 10;

// Independent chains. The result is stored, otherwise the compiler would remove the loop.
template <class Real>
__global__ void multiply_add(Real factor, Real* result) {
    gpu::await_predecessor();
    Real sums[kChains];
    for (int i = 0; i < kChains; ++i) sums[i] = static_cast<Real>(threadIdx.x + i);
    for (int round = 0; round < kRounds; ++round)
        for (int i = 0; i < kChains; ++i) sums[i] = sums[i] * factor + factor;
    Real sum = 0;
    for (int i = 0; i < kChains; ++i) sum += sums[i];
    if (sum == Real(0.5)) *result = sum;
}

__global__ void triad(int64_t count, const double* b, const double* c, double* a) {
    gpu::await_predecessor();
    for (int64_t i = blockIdx.x * int64_t{kThreads} + threadIdx.x; i < count; i += gridDim.x * int64_t{kThreads})
        a[i] = b[i] + 3.0 * c[i];
}

// Takes the best of all trials, after one warm-up.
template <class Launch>
double best_seconds(int ordinal, const gpu::Stream& stream, const Launch& launch) {
    EventTimer timer(ordinal, static_cast<cudaStream_t>(stream));
    double best = 0;
    for (int trial = 0; trial <= kTrials; ++trial) {
        timer.start();
        launch();
        timer.stop();
        const double seconds = timer.seconds();
        if (trial == 1 || (trial > 1 && seconds < best)) best = seconds;
    }
    return best;
}

template <class Real>
double peak_flops(int ordinal, int block_count, const gpu::Stream& stream) {
    gpu::DeviceBuffer<Real> result;
    result.resize_discard(1, "a measurement");
    const double seconds = best_seconds(ordinal, stream, [&] {
        gpu::launch("multiply-adds", multiply_add<Real>, block_count, kThreads, stream, Real(0.999), result.data());
    });
    return 2.0 * kChains * kRounds * kThreads * block_count / seconds;
}

double peak_bytes(int ordinal, int block_count, const gpu::Stream& stream) {
    constexpr int64_t kCount = 1 << 25;  // 256 MB each
    gpu::DeviceBuffer<double> a, b, c;
    for (auto* array : {&a, &b, &c}) {
        array->resize_discard(kCount, "a measurement");
        array->clear(stream);
    }
    const double seconds = best_seconds(ordinal, stream, [&] {
        gpu::launch("a triad", triad, block_count, kThreads, stream, kCount, b.data(), c.data(), a.data());
    });
    return 3.0 * kCount * sizeof(double) / seconds;
}

}  // namespace

GpuPeaks measure_gpu_peaks(int ordinal) {
    const gpu::CurrentDevice current(ordinal);
    const gpu::Stream stream;
    int processors = 0;
    gpu::check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, ordinal),
               "querying the number of multiprocessors");
    const int block_count = 64 * processors;
    return {peak_flops<float>(ordinal, block_count, stream), peak_flops<double>(ordinal, block_count, stream),
            peak_bytes(ordinal, block_count, stream)};
}

}  // namespace mlff
