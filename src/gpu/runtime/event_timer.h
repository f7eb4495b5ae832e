// SPDX-License-Identifier: MIT
// Measures a time span: with the host's steady clock, or on a GPU with its own clock, between events in a stream.
#pragma once

#include <memory>

namespace mlff {

class EventTimer {
public:
    EventTimer();                               // host clock
    EventTimer(int gpu_ordinal, void* stream);  // a cudaStream_t of that GPU; throws Error{device}
    ~EventTimer();
    EventTimer(const EventTimer&) = delete;
    EventTimer& operator=(const EventTimer&) = delete;

    // On a GPU these mark a point in the stream: when all earlier work has finished.
    void start();
    void stop();
    double seconds() const;  // from start() to stop(); waits for stop(); throws Error{device}

    // Measures the time while it lives.
    class Span {
    public:
        explicit Span(EventTimer& timer) : timer_(timer) { timer_.start(); }
        ~Span() { timer_.stop(); }
        Span(const Span&) = delete;
        Span& operator=(const Span&) = delete;

    private:
        EventTimer& timer_;
    };

    // The interface of both clocks.
    class Events {
    public:
        virtual ~Events() = default;
        virtual void start() = 0;
        virtual void stop() = 0;
        virtual double seconds() const = 0;
    };

private:
    std::unique_ptr<Events> events_;
};

// Defined once in event_timer.cu and once in gpu_none.cpp.
std::unique_ptr<EventTimer::Events> make_gpu_events(int gpu_ordinal, void* stream);

}  // namespace mlff
