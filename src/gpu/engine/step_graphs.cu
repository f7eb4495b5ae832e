// SPDX-License-Identifier: MIT
#include "gpu/engine/step_graphs.h"

#include <exception>

#include "core/log.h"

namespace mlff::gpu {

// The capture mode is thread-local, because other sessions may allocate on their own threads at the same time.
std::optional<StepGraph> StepGraph::capture(cudaStream_t stream, const std::function<void()>& enqueue) {
    if (cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) != cudaSuccess) {
        cudaGetLastError();
        return std::nullopt;
    }
    bool is_good = true;
    try {
        enqueue();
    } catch (const std::exception&) {
        is_good = false;
    }
    cudaGraph_t captured = nullptr;
    cudaGraphExec_t handle = nullptr;
    is_good &= cudaStreamEndCapture(stream, &captured) == cudaSuccess;
    if (is_good && captured) cudaGraphInstantiate(&handle, captured, 0);
    if (captured) cudaGraphDestroy(captured);
    if (handle) return StepGraph(handle);
    cudaGetLastError();  // clears the error, so that no later call reports it
    return std::nullopt;
}

StepGraph::~StepGraph() {
    if (handle_) cudaGraphExecDestroy(handle_);
}

bool StepGraph::launch(cudaStream_t stream) const {
    if (cudaGraphLaunch(handle_, stream) == cudaSuccess) return true;
    cudaGetLastError();
    return false;
}

void log_that_graphs_failed() {
    log(LogLevel::warning,
        "no CUDA graph could be made of the step; kernels are launched one by one, which is slower for small systems");
}

}  // namespace mlff::gpu
