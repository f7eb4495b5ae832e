// SPDX-License-Identifier: MIT
// Steps as CUDA graphs, kept for the few kinds of steps that were seen last.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace mlff::gpu {

// A graph that can be launched.
class StepGraph {
public:
    // What `enqueue` puts in the stream, which does not run. Nothing where CUDA cannot make a graph of it; errors of
    // `enqueue` count as that.
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

// `Key` holds all that is baked into a graph: steps with equal keys launch the same kernels with the same arguments.
template <class Key>
class StepGraphs {
public:
    // Runs the step that `enqueue` puts in the stream. A key is first seen without a graph, so that all kernels are
    // loaded and steps that never come again cost nothing; the second time a graph is made. Where CUDA makes none,
    // steps stay plain launches.
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
        std::rotate(entries_.begin(), found, found + 1);  // the last used is the first
        Entry& entry = entries_.front();
        if (!entry.graph) entry.graph = StepGraph::capture(stream, enqueue);
        if (entry.graph && entry.graph->launch(stream)) return;
        is_off_ = true;
        entries_.clear();
        log_that_graphs_failed();
        enqueue();
    }

    // To be called when memory that steps use has moved.
    void clear() { entries_.clear(); }

private:
    static constexpr size_t kMostGraphs = 8;
    struct Entry {
        Key key;
        std::optional<StepGraph> graph;
    };
    std::vector<Entry> entries_;  // by last use
    bool is_off_ = false;
};

}  // namespace mlff::gpu
