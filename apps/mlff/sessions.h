// SPDX-License-Identifier: MIT
// Sessions by head: a frame may choose its own.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "engine/session.h"
#include "formats/extxyz.h"

namespace mlff::app {

// The head that a frame is evaluated with, in every command: its own (head= in its comment line), else the one that
// the command line chooses. Where both are there and differ, one warning of the process says so. A model with one head
// leaves nothing to choose, and its frames may name heads of other models.
std::string head_of(const Frame& frame, const Model& model, const std::string& chosen);

// What a frame of a trajectory says of its head; "" if the model has only one.
std::string head_to_write(const Session& session);

class Sessions {
public:
    Sessions(std::shared_ptr<const Model> model, SessionOptions options)
        : model_(std::move(model)), options_(std::move(options)) {}

    Session& for_head(const std::string& head) {
        auto& session = sessions_[head];
        if (!session) session = std::make_unique<Session>(model_, options_for(head));
        return *session;
    }
    SessionOptions options_for(const std::string& head) const {
        SessionOptions options = options_;
        options.head = head;
        return options;
    }
    std::string head_of(const Frame& frame) const { return app::head_of(frame, *model_, options_.head); }
    Session& for_frame(const Frame& frame) { return for_head(head_of(frame)); }

    const Model& model() const { return *model_; }
    const std::shared_ptr<const Model>& shared_model() const { return model_; }

private:
    std::shared_ptr<const Model> model_;
    SessionOptions options_;
    std::map<std::string, std::unique_ptr<Session>> sessions_;
};

}  // namespace mlff::app
