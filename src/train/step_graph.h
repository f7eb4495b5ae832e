// SPDX-License-Identifier: MIT
// Records a training step once as a CUDA graph and replays it: one launch instead of a thousand.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "train/torch_headers.h"

namespace mlff::train {

// While it lives, this thread's work goes to a separate stream, because the default stream cannot be recorded. Does
// nothing on a CPU.
class SideStream {
public:
    explicit SideStream(const at::Device& device);
    ~SideStream();

private:
    struct State;
    std::unique_ptr<State> state_;
};

class StepGraph {
public:
    StepGraph();
    ~StepGraph();

    static bool is_compiled_in();

    // Records what `step` launches, without running it. `step` must have run a few times on this stream. On failure
    // returns false and the reason; `step` can still be run as before.
    bool record(const std::function<void()>& step, std::string& reason);
    void replay();

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace mlff::train
