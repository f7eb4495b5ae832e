// SPDX-License-Identifier: MIT
// What is behind the opaque handles of mlff.h.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "core/error.h"
#include "core/system_view.h"
#include "engine/session.h"
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

}  // namespace mlff::api
