// SPDX-License-Identifier: MIT
// Runs steps as CUDA graphs, and keeps the graphs of the last few kinds of steps.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace mlff::gpu {

class StepGraph {
public:
    // Captures what `enqueue` puts in the stream, without running it. Returns nothing if CUDA cannot make a graph of
    // it, or if `enqueue` throws.
    static std::optional<StepGraph> capture(cudaStream_t stream, const std::function<void()>& enqueue);

    StepGraph(StepGraph&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    StepGraph& operator=(StepGraph&& other) noexcept {
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~StepGraph();

    bool launch(cudaStream_t stream) const;  // false if CUDA refuses

private:
    explicit StepGraph(cudaGraphExec_t handle) : handle_(handle) {}
    cudaGraphExec_t handle_ = nullptr;
};

void log_that_graphs_failed();

// `Key` has everything that a graph depends on: steps with equal keys launch the same kernels with the same arguments.
template <class Key>
class StepGraphs {
public:
    // Runs the step that `enqueue` puts in the stream. The first time a key is seen, the step is plain launches: this
    // loads all kernels, and makes no graph for steps that never repeat. The second time the step is captured as a
    // graph. If CUDA cannot make a graph, all steps are plain launches from then on.
    template <class Enqueue>
    void run(const Key& key, cudaStream_t stream, const Enqueue& enqueue) {
        if (is_off_) return enqueue();
        const auto found =
            std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.key == key; });
        if (found == entries_.end()) {
            if (entries_.size() == kMostGraphs) entries_.pop_back();
            entries_.insert(entries_.begin(), Entry{key, std::nullopt});
            return enqueue();
        }
        std::rotate(entries_.begin(), found, found + 1);  // moves it to the front
        Entry& entry = entries_.front();
        if (!entry.graph) entry.graph = StepGraph::capture(stream, enqueue);
        if (entry.graph && entry.graph->launch(stream)) return;
        is_off_ = true;
        entries_.clear();
        log_that_graphs_failed();
        enqueue();
    }

    // Call this when memory that steps use has moved.
    void clear() { entries_.clear(); }

private:
    static constexpr size_t kMostGraphs = 8;
    struct Entry {
        Key key;
        std::optional<StepGraph> graph;
    };
    std::vector<Entry> entries_;  // the last used first
    bool is_off_ = false;
};

}  // namespace mlff::gpu
