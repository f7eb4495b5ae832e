// SPDX-License-Identifier: MIT
// What is behind the opaque handles of mlff.h.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/system_view.h"
#include "engine/session.h"
#include "gpu/runtime/event_timer.h"
#include "gpu/runtime/gpu.h"
#include "gpu/runtime/work_stream.h"
#include "measure/memory_meter.h"
#include "mlff/mlff.h"
#include "neighbors/neighbor_list.h"

struct mlff_model {
    std::shared_ptr<const mlff::Model> model;
    std::string description_json;
};

struct mlff_session {
    mlff::Session session;
    std::atomic<bool> is_used = false;
};

struct mlff_neighbors {
    mlff::NeighborList list;
    mlff::ThreadTeam team;
    bool is_valid = false;  // false until the first update that succeeded
    std::atomic<bool> is_used = false;
};

struct mlff_stream {
    std::unique_ptr<mlff::WorkStream> stream;
};

struct mlff_timer {
    enum class State { idle, started, stopped };
    std::unique_ptr<mlff::EventTimer> timer;
    State state = State::idle;
};

struct mlff_memory_watch {
    std::unique_ptr<mlff::bench::MemoryMeter> meter;
    std::vector<int64_t> readings;
};

namespace mlff::api {

// For the time of a call: a second one, by another thread or by the caller's function for exchanging rows, would find
// memory that the first is working in.
class OnlyUse {
public:
    OnlyUse(std::atomic<bool>& is_used, const char* name) : is_used_(is_used) {
        if (is_used.exchange(true))
            fail(Status::argument, "the ", name, " is in use by another call; it serves one at a time");
    }
    ~OnlyUse() { is_used_ = false; }
    OnlyUse(const OnlyUse&) = delete;
    OnlyUse& operator=(const OnlyUse&) = delete;

private:
    std::atomic<bool>& is_used_;
};

// Throws Error{argument} for NULL, a bad struct_size, a periodic direction without a cell.
SystemView system_view(const mlff_system* system);

// Throws Error{argument} for NULL and for names of no device, Error{device} if there is no such GPU.
inline Device named_device(const char* name) {
    if (!name) fail(Status::argument, "device is NULL");
    return device_named(name);
}

}  // namespace mlff::api
