// SPDX-License-Identifier: MIT
#include "gpu/runtime/event_timer.h"

#include <cuda_runtime.h>

#include <new>

#include "gpu/runtime/cuda_check.h"
#include "gpu/runtime/cuda_stream.h"

namespace mlff {
namespace {

class TimedEvent {
public:
    TimedEvent() { gpu::check(cudaEventCreate(&event_), "creating an event"); }
    ~TimedEvent() { cudaEventDestroy(event_); }
    TimedEvent(const TimedEvent&) = delete;
    TimedEvent& operator=(const TimedEvent&) = delete;
    operator cudaEvent_t() const { return event_; }

private:
    cudaEvent_t event_ = nullptr;
};

class GpuEvents : public EventTimer::Events {
public:
    GpuEvents(int ordinal, cudaStream_t stream) : ordinal_(ordinal), stream_(stream) {
        const gpu::CurrentDevice current(ordinal);
        begin_ = std::make_unique<TimedEvent>();
        end_ = std::make_unique<TimedEvent>();
    }
    ~GpuEvents() override {
        const gpu::CurrentDevice current(ordinal_, std::nothrow);
        begin_.reset();
        end_.reset();
    }
    // The end of a span must not throw: errors are reported by seconds().
    void start() override { problem_ = record(*begin_); }
    void stop() override {
        if (problem_ == cudaSuccess) problem_ = record(*end_);
    }
    double seconds() const override {
        float milliseconds = 0;
        gpu::check(problem_, "timing an event");
        gpu::check(cudaEventSynchronize(*end_), "waiting for an event");
        gpu::check(cudaEventElapsedTime(&milliseconds, *begin_, *end_), "timing an event");
        return 1e-3 * static_cast<double>(milliseconds);
    }

private:
    cudaError_t record(cudaEvent_t event) const {
        const gpu::CurrentDevice current(ordinal_, std::nothrow);
        return cudaEventRecord(event, stream_);
    }
    int ordinal_;
    cudaStream_t stream_;
    cudaError_t problem_ = cudaSuccess;
    std::unique_ptr<TimedEvent> begin_, end_;
};

}  // namespace

std::unique_ptr<EventTimer::Events> make_gpu_events(int gpu_ordinal, void* stream) {
    return std::make_unique<GpuEvents>(gpu_ordinal, static_cast<cudaStream_t>(stream));
}

}  // namespace mlff
