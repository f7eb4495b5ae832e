// SPDX-License-Identifier: MIT
#include "train/step_graph.h"

#if MLFF_TRAIN_CUDA_GRAPHS
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#endif

namespace mlff::train {

#if MLFF_TRAIN_CUDA_GRAPHS

struct SideStream::State {
    explicit State(const at::Device& device)
        : guard(c10::cuda::getStreamFromPool(/*isHighPriority=*/true, device.index())) {}
    c10::cuda::CUDAStreamGuard guard;
};
SideStream::SideStream(const at::Device& device) {
    if (!device.is_cuda()) return;
    torch::cuda::synchronize();  // makes earlier work on the device visible to the new stream
    state_ = std::make_unique<State>(device);
}
SideStream::~SideStream() {
    if (state_) torch::cuda::synchronize();
}

struct StepGraph::State {
    at::cuda::CUDAGraph graph;
};
StepGraph::StepGraph() = default;
StepGraph::~StepGraph() = default;
bool StepGraph::is_compiled_in() { return true; }

bool StepGraph::record(const std::function<void()>& step, std::string& reason) {
    torch::cuda::synchronize();
    auto state = std::make_unique<State>();
    bool is_recording = false;
    try {
        state->graph.capture_begin();
        is_recording = true;
        step();
        is_recording = false;
        state->graph.capture_end();
        state_ = std::move(state);
        return true;
    } catch (const std::exception& error) {
        reason = error.what();
    }
    if (is_recording) {
        try {
            state->graph.capture_end();
        } catch (const std::exception&) {  // the recording is known to be invalid
        }
    }
    try {
        state.reset();
        torch::cuda::synchronize();
    } catch (const std::exception&) {}
    return false;
}
void StepGraph::replay() { state_->graph.replay(); }

#else

struct SideStream::State {};
SideStream::SideStream(const at::Device&) {}
SideStream::~SideStream() = default;
struct StepGraph::State {};
StepGraph::StepGraph() = default;
StepGraph::~StepGraph() = default;
bool StepGraph::is_compiled_in() { return false; }
bool StepGraph::record(const std::function<void()>&, std::string& reason) {
    reason = "this build has no CUDA graphs";
    return false;
}
void StepGraph::replay() {}

#endif

}  // namespace mlff::train
