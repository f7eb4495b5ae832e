// SPDX-License-Identifier: MIT
// A CUDA runtime that runs kernels on the host, one block of threads after the other, each thread a fiber that is
// switched at barriers. Only what the engine and the kernels of src/gpu/engine, src/mace and src/painn use;
// instructions without a function are in gpu/engine/instructions.h beside this.
#pragma once

#include <math.h>
#include <setjmp.h>
#include <ucontext.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __shared__ static
#define __align__(n) alignas(n)
#define __launch_bounds__(...)
#define __grid_constant__

struct dim3 {
    unsigned x = 1, y = 1, z = 1;
    dim3(unsigned x_in = 1, unsigned y_in = 1, unsigned z_in = 1) : x(x_in), y(y_in), z(z_in) {}
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
struct alignas(8) uint2 {
    unsigned x, y;
};
struct alignas(8) float2 {
    float x, y;
};
inline float2 make_float2(float x, float y) { return {x, y}; }
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

using cudaError_t = int;
enum : int { cudaSuccess = 0, cudaErrorMemoryAllocation = 2, cudaErrorNotReady = 600, cudaErrorNotSupported = 801 };
struct EmulatedStream;
struct EmulatedEvent;
struct EmulatedGraph;
using cudaStream_t = EmulatedStream*;
using cudaEvent_t = EmulatedEvent*;
using cudaGraph_t = EmulatedGraph*;
using cudaGraphExec_t = EmulatedGraph*;
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };
enum { cudaStreamNonBlocking = 1, cudaEventDisableTiming = 2, cudaStreamCaptureModeThreadLocal = 1 };
enum {
    cudaDevAttrMultiProcessorCount = 16,
    cudaDevAttrMaxSharedMemoryPerBlockOptin = 97,
    cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
    cudaMemoryTypeDevice = 2,
    cudaMemoryTypeManaged = 3
};
struct cudaIpcMemHandle_t {
    char reserved[64];
};
enum { cudaIpcMemLazyEnablePeerAccess = 1 };
inline cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t*, void*) {
    return cudaErrorNotSupported;
}  // one process is all there is
inline cudaError_t cudaIpcOpenMemHandle(void**, cudaIpcMemHandle_t, unsigned) { return cudaErrorNotSupported; }
inline cudaError_t cudaIpcCloseMemHandle(void*) { return cudaErrorNotSupported; }
struct cudaPointerAttributes {
    int type = 0, device = 0;
};
struct cudaFuncAttributes {
    size_t sharedSizeBytes = 0;
    int maxDynamicSharedSizeBytes = 0;
    int ptxVersion = 80;  // no early start of kernels
};
enum cudaLaunchAttributeID { cudaLaunchAttributeProgrammaticStreamSerialization, cudaLaunchAttributeClusterDimension };
struct cudaLaunchAttribute {
    cudaLaunchAttributeID id{};
    struct {
        int programmaticStreamSerializationAllowed = 0;
        dim3 clusterDim;
    } val;
};
struct cudaLaunchConfig_t {
    dim3 gridDim, blockDim;
    size_t dynamicSmemBytes = 0;
    cudaStream_t stream = nullptr;
    cudaLaunchAttribute* attrs = nullptr;
    unsigned numAttrs = 0;
};

inline const char* cudaGetErrorString(cudaError_t) { return "emulated"; }
inline cudaError_t cudaGetLastError() { return cudaSuccess; }
inline cudaError_t cudaGetDevice(int* device) { return *device = 0, cudaSuccess; }
inline cudaError_t cudaSetDevice(int) { return cudaSuccess; }
template <class T>
cudaError_t cudaMalloc(T** to, size_t bytes) {
    *to = static_cast<T*>(std::aligned_alloc(256, (bytes + 511) / 256 * 256));
    std::memset(static_cast<void*>(*to), 0xff, bytes);  // NaN until written
    return cudaSuccess;
}
inline cudaError_t cudaFree(void* at) { return std::free(at), cudaSuccess; }
template <class T>
cudaError_t cudaMallocHost(T** to, size_t bytes) {
    return cudaMalloc(to, bytes);
}
inline cudaError_t cudaFreeHost(void* at) { return cudaFree(at); }
enum { cudaHostRegisterPortable = 1 };
inline cudaError_t cudaHostRegister(void*, size_t, unsigned) { return cudaSuccess; }
inline cudaError_t cudaHostUnregister(void*) { return cudaSuccess; }
inline cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind) {
    return std::memcpy(to, from, bytes), cudaSuccess;
}
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind, cudaStream_t) {
    return std::memcpy(to, from, bytes), cudaSuccess;
}
inline cudaError_t cudaMemsetAsync(void* at, int value, size_t bytes, cudaStream_t) {
    return std::memset(at, value, bytes), cudaSuccess;
}
inline cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
    return *free_bytes = *total_bytes = size_t{8} << 30, cudaSuccess;
}
inline cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) { return *stream = nullptr, cudaSuccess; }
inline cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }
inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) { return *event = nullptr, cudaSuccess; }
inline cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t, cudaEvent_t) {
    return *milliseconds = 0, cudaSuccess;
}
inline cudaError_t cudaEventQuery(cudaEvent_t) { return cudaSuccess; }
inline cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
inline cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }
inline cudaError_t cudaStreamBeginCapture(cudaStream_t, int) { return cudaErrorNotSupported; }
inline cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t*) { return cudaErrorNotSupported; }
inline cudaError_t cudaGraphInstantiate(cudaGraphExec_t*, cudaGraph_t, unsigned long long) {
    return cudaErrorNotSupported;
}
inline cudaError_t cudaGraphLaunch(cudaGraphExec_t, cudaStream_t) { return cudaErrorNotSupported; }
inline cudaError_t cudaGraphDestroy(cudaGraph_t) { return cudaSuccess; }
inline cudaError_t cudaGraphExecDestroy(cudaGraphExec_t) { return cudaSuccess; }
inline cudaError_t cudaDeviceGetAttribute(int* value, int attribute, int) {
    return *value = attribute == cudaDevAttrMultiProcessorCount ? 3 : 227 << 10, cudaSuccess;
}
template <class Kernel>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, Kernel, int, size_t) {
    return *blocks = 2, cudaSuccess;
}
inline cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void*) {
    return *attributes = {cudaMemoryTypeDevice, 0}, cudaSuccess;
}
template <class Kernel>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, Kernel) {
    return *attributes = {}, cudaSuccess;
}
template <class Kernel>
cudaError_t cudaFuncSetAttribute(Kernel, int, int) {
    return cudaSuccess;
}

// ---- threads ----

inline dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace emulated {

inline constexpr size_t kStackBytes = 256 << 10, kSharedBytes = 227 << 10;
inline constexpr int kMostBlocksOfCluster = 8;
enum class State { ready, at_cluster_barrier, at_block_barrier, at_warp_barrier, done };
struct Thread {
    ucontext_t context;  // for the first switch; later ones are jumps, which need no system call
    jmp_buf jump;
    bool has_begun = false;
    std::unique_ptr<char[]> stack;
    State state = State::done;
};
inline std::vector<Thread> threads;
inline ucontext_t unused_return;
inline jmp_buf scheduler;
inline int current = 0, count = 0, block_size = 1;  // threads of the cluster that runs, and of each of its blocks
inline std::function<void()> body;
inline bool runs_last_block_first = false;  // tests set it: a GPU runs blocks in any order
alignas(128) inline unsigned char shared_memory[kMostBlocksOfCluster][kSharedBytes];
inline unsigned char exchange[kMostBlocksOfCluster * 1024][64];  // of a warp's lanes

inline void enter() {
    body();
    threads[static_cast<size_t>(current)].state = State::done;
    _longjmp(scheduler, 1);
}
inline void wait(State state) {
    Thread& own = threads[static_cast<size_t>(current)];
    own.state = state;
    if (_setjmp(own.jump) == 0) _longjmp(scheduler, 1);
}
inline void switch_to(Thread& thread) {
    if (_setjmp(scheduler) != 0) return;
    if (thread.has_begun) _longjmp(thread.jump, 1);
    thread.has_begun = true;
    swapcontext(&unused_return, &thread.context);
}
// Lets go those of [begin, end) that wait, if all of them wait for this or are done.
inline bool release(int begin, int end, State waiting) {
    bool any = false;
    for (int i = begin; i < end; ++i) {
        const State state = threads[static_cast<size_t>(i)].state;
        if (state != waiting && state != State::done) return false;
        any |= state == waiting;
    }
    for (int i = begin; i < end; ++i)
        if (threads[static_cast<size_t>(i)].state == waiting) threads[static_cast<size_t>(i)].state = State::ready;
    return any;
}
// The blocks of a cluster together, from this block of the grid on.
inline void run_cluster(unsigned first_block) {
    for (int i = 0; i < count; ++i) {
        Thread& thread = threads[static_cast<size_t>(i)];
        getcontext(&thread.context);
        thread.context.uc_stack.ss_sp = thread.stack.get();
        thread.context.uc_stack.ss_size = kStackBytes;
        thread.context.uc_link = nullptr;
        thread.state = State::ready;
        thread.has_begun = false;
        makecontext(&thread.context, enter, 0);
    }
    for (;;) {
        bool has_run = false;
        for (int i = 0; i < count; ++i) {
            if (threads[static_cast<size_t>(i)].state != State::ready) continue;
            has_run = true;
            current = i;
            threadIdx.x = static_cast<unsigned>(i % block_size);
            blockIdx.x = first_block + static_cast<unsigned>(i / block_size);
            switch_to(threads[static_cast<size_t>(i)]);
        }
        if (has_run) continue;
        bool released = false;
        for (int warp = 0; warp < count; warp += 32)
            released |= release(warp, warp + 32 < count ? warp + 32 : count, State::at_warp_barrier);
        if (released) continue;
        for (int block = 0; block < count; block += block_size)
            released |= release(block, block + block_size, State::at_block_barrier);
        if (!released && !release(0, count, State::at_cluster_barrier)) break;
    }
    for (int i = 0; i < count; ++i)
        if (threads[static_cast<size_t>(i)].state != State::done) {
            std::fprintf(stderr, "threads of a block wait for different barriers\n");
            std::abort();
        }
}

// Each lane gives a value and may read those of all lanes of its warp in `use(values)`.
template <class T, class Use>
auto exchange_in_warp(const T& own, const Use& use) {
    static_assert(sizeof(T) <= sizeof exchange[0] && std::is_trivially_copyable_v<T>);
    std::memcpy(exchange[current], &own, sizeof own);
    wait(State::at_warp_barrier);
    const int first = current / 32 * 32;
    const auto value_of = [first](int lane) {
        T value;
        std::memcpy(&value, exchange[first + lane], sizeof value);
        return value;
    };
    const auto result = use(value_of);
    wait(State::at_warp_barrier);
    return result;
}

}  // namespace emulated

template <class... Parameters, class... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                               Arguments&&... arguments) {
    using namespace emulated;
    if (config->gridDim.x == 0 || config->dynamicSmemBytes > kSharedBytes || config->blockDim.x > 1024) return 1;
    gridDim = config->gridDim;
    blockDim = config->blockDim;
    unsigned cluster_size = 1;
    for (unsigned i = 0; i < config->numAttrs; ++i)
        if (config->attrs[i].id == cudaLaunchAttributeClusterDimension)
            cluster_size = config->attrs[i].val.clusterDim.x;
    if (cluster_size > kMostBlocksOfCluster || gridDim.x % cluster_size != 0) return 1;
    block_size = static_cast<int>(config->blockDim.x);
    count = block_size * static_cast<int>(cluster_size);
    if (threads.size() < static_cast<size_t>(count)) {
        threads.resize(static_cast<size_t>(count));
        for (Thread& thread : threads)
            if (!thread.stack) thread.stack = std::make_unique<char[]>(kStackBytes);
    }
    body = [&] { kernel(arguments...); };
    for (unsigned z = 0; z < gridDim.z; ++z)
        for (unsigned y = 0; y < gridDim.y; ++y)
            for (unsigned done = 0; done < gridDim.x; done += cluster_size) {
                const unsigned x = runs_last_block_first ? gridDim.x - cluster_size - done : done;
                blockIdx = dim3(x, y, z);
                std::memset(shared_memory, 0xff, cluster_size * kSharedBytes);
                run_cluster(x);
            }
    return cudaSuccess;
}

// Sums and products that no compiler fuses.
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dmul_rn(double a, double b) { return a * b; }

inline void __syncthreads() { emulated::wait(emulated::State::at_block_barrier); }
inline void __syncwarp(unsigned = 0xffffffffu) { emulated::wait(emulated::State::at_warp_barrier); }
template <class T>
T __shfl_sync(unsigned, T value, int lane) {
    return emulated::exchange_in_warp(value, [&](const auto& of) { return of(lane % 32); });
}
template <class T>
T __shfl_xor_sync(unsigned, T value, int mask) {
    return emulated::exchange_in_warp(value, [&](const auto& of) { return of((emulated::current % 32) ^ mask); });
}
inline unsigned __ballot_sync(unsigned, int value) {
    return emulated::exchange_in_warp(value, [](const auto& of) {
        unsigned bits = 0;
        for (int lane = 0; lane < 32; ++lane) bits |= static_cast<unsigned>(of(lane) != 0) << lane;
        return bits;
    });
}
inline int atomicAdd(int* to, int value) { return std::exchange(*to, *to + value); }
inline unsigned long long atomicAdd(unsigned long long* to, unsigned long long value) {
    return std::exchange(*to, *to + value);
}
inline long long __float2ll_rn(float x) { return llrintf(x); }
inline long long __double2ll_rn(double x) { return llrint(x); }
inline int __popc(unsigned bits) { return __builtin_popcount(bits); }
inline int __ffs(int bits) { return __builtin_ffs(bits); }
template <class T>
T __ldg(const T* from) {
    return *from;
}
inline float sinpif(float x) { return static_cast<float>(sin(M_PI * static_cast<double>(x))); }
inline float cospif(float x) { return static_cast<float>(cos(M_PI * static_cast<double>(x))); }
inline double sinpi(double x) { return sin(M_PI * (x - 2 * rint(x / 2))); }
inline double cospi(double x) { return cos(M_PI * (x - 2 * rint(x / 2))); }
inline double __hiloint2double(int high, int low) {
    const int words[2] = {low, high};
    double x;
    std::memcpy(&x, words, sizeof x);
    return x;
}
inline unsigned __float_as_uint(float x) {
    unsigned bits;
    std::memcpy(&bits, &x, sizeof bits);
    return bits;
}
inline float __uint_as_float(unsigned bits) {
    float x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}
template <class A, class B>
constexpr std::common_type_t<A, B> min(A a, B b) {
    return a < b ? a : b;
}
template <class A, class B>
constexpr std::common_type_t<A, B> max(A a, B b) {
    return a > b ? a : b;
}
