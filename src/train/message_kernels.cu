// SPDX-License-Identifier: MIT
// The kernels of message_kernels.h on the GPU. Launch: one block per atom, one thread per channel; further blocks zero
// the rows of padding edges. Threads of a warp read adjacent channels. The data of an atom's neighbours come from the
// L2 cache.
#include <cuda_runtime_api.h>

#include "core/error.h"
#include "train/message_kernels.h"

namespace mlff::train {
namespace {

constexpr unsigned kPaddingBlocks = 32;

// Sums over the 32 channels of a warp, in a fixed order. The caller adds the parts of an edge.
struct WarpSums {
    float* sums;  // [parts][edges][3]
    int64_t edge_count;
    __device__ void operator()(int64_t edge, float x, float y, float z) const {
        for (int distance = 16; distance > 0; distance /= 2) {
            x += __shfl_down_sync(0xffffffffu, x, distance);
            y += __shfl_down_sync(0xffffffffu, y, distance);
            z += __shfl_down_sync(0xffffffffu, z, distance);
        }
        if (threadIdx.x % 32 == 0) {
            float* sum = sums + 3 * (threadIdx.x / 32 * edge_count + edge);
            sum[0] = x;
            sum[1] = y;
            sum[2] = z;
        }
    }
};

__device__ void clear_padding(const MessageEdges& edges, const MessageArrays& arrays, int64_t block) {
    for (int64_t edge = edges.first[edges.atoms] + block; edge < edges.edges; edge += kPaddingBlocks) {
        if (arrays.grad_filter) store_parts(arrays.grad_filter, edge, edges.channels, threadIdx.x, {});
        if (arrays.grad_direction && threadIdx.x % 32 < 3)
            arrays.grad_direction[3 * (threadIdx.x / 32 * edges.edges + edge) + threadIdx.x % 32] = 0;
    }
}

template <MessageStage Stage, bool HasVectors, bool WantsDirection>
__global__ void message_kernel(MessageEdges edges, MessageArrays arrays) {
    const int64_t atom = blockIdx.x;
    if (atom >= edges.atoms) return clear_padding(edges, arrays, atom - edges.atoms);
    if constexpr (Stage == MessageStage::sums) message_sums<HasVectors>(edges, arrays, atom, threadIdx.x);
    if constexpr (Stage == MessageStage::gradient)
        message_gradient<HasVectors, WantsDirection>(edges, arrays, atom, threadIdx.x,
                                                     WarpSums{arrays.grad_direction, edges.edges});
    if constexpr (Stage == MessageStage::second_by_sender)
        message_second_by_sender<HasVectors>(edges, arrays, atom, threadIdx.x);
    if constexpr (Stage == MessageStage::second_by_receiver)
        message_second_by_receiver<HasVectors>(edges, arrays, atom, threadIdx.x);
}

template <MessageStage Stage, bool WantsDirection = false>
void launch(const MessageEdges& edges, const MessageArrays& arrays, cudaStream_t stream) {
    const auto blocks = static_cast<unsigned>(edges.atoms) + kPaddingBlocks,
               threads = static_cast<unsigned>(edges.channels);
    if (arrays.v)
        message_kernel<Stage, true, WantsDirection><<<blocks, threads, 0, stream>>>(edges, arrays);
    else
        message_kernel<Stage, false, WantsDirection><<<blocks, threads, 0, stream>>>(edges, arrays);
    const cudaError_t status = cudaGetLastError();
    if (status != cudaSuccess) fail(Status::device, "message kernel: ", cudaGetErrorString(status));
}

}  // namespace

void run_message_stage_cuda(MessageStage stage, const MessageEdges& edges, const MessageArrays& arrays, void* stream) {
    auto* const cuda_stream = static_cast<cudaStream_t>(stream);
    switch (stage) {
        case MessageStage::sums: return launch<MessageStage::sums>(edges, arrays, cuda_stream);
        case MessageStage::gradient:
            if (arrays.grad_direction) return launch<MessageStage::gradient, true>(edges, arrays, cuda_stream);
            return launch<MessageStage::gradient>(edges, arrays, cuda_stream);
        case MessageStage::second_by_sender: return launch<MessageStage::second_by_sender>(edges, arrays, cuda_stream);
        case MessageStage::second_by_receiver:
            return launch<MessageStage::second_by_receiver>(edges, arrays, cuda_stream);
    }
}
bool has_message_kernels_cuda() { return true; }

}  // namespace mlff::train
