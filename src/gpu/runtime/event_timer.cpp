// SPDX-License-Identifier: MIT
#include "gpu/runtime/event_timer.h"

#include <chrono>

namespace mlff {
namespace {

class HostEvents : public EventTimer::Events {
public:
    void start() override { begin_ = end_ = Steady::now(); }
    void stop() override { end_ = Steady::now(); }
    double seconds() const override { return std::chrono::duration<double>(end_ - begin_).count(); }

private:
    using Steady = std::chrono::steady_clock;
    Steady::time_point begin_, end_;
};

}  // namespace

EventTimer::EventTimer() : events_(std::make_unique<HostEvents>()) {}
EventTimer::EventTimer(int gpu_ordinal, void* stream) : events_(make_gpu_events(gpu_ordinal, stream)) {}
EventTimer::~EventTimer() = default;
void EventTimer::start() { events_->start(); }
void EventTimer::stop() { events_->stop(); }
double EventTimer::seconds() const { return events_->seconds(); }

}  // namespace mlff
