// SPDX-License-Identifier: MIT
// What is behind the opaque handles of mlff.h.
#pragma once

#include <memory>
#include <string>

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
};

struct mlff_neighbors {
    mlff::NeighborList list;
    mlff::ThreadTeam team;
    bool is_valid = false;  // false until the first update that succeeded
};

namespace mlff::api {

// Throws Error{argument} for NULL, a bad struct_size, a periodic direction without a cell.
SystemView system_view(const mlff_system* system);

}  // namespace mlff::api
