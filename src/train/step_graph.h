// SPDX-License-Identifier: MIT
// A training step recorded once as a CUDA graph and replayed: one launch in place of a thousand.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "train/torch_headers.h"

namespace mlff::train {

// While it lives, work of this thread goes to a stream of its own (recording is not possible on the default stream).
// Nothing on a CPU.
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

    // Records what `step` launches, which must have run a few times before, on this stream. Nothing is executed. On
    // failure returns false, says why, and leaves things so that `step` can be run as before.
    bool record(const std::function<void()>& step, std::string& reason);
    void replay();

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace mlff::train
