// SPDX-License-Identifier: MIT
// Sessions by head: a frame may choose its own.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "engine/session.h"

namespace mlff::app {

class Sessions {
public:
    Sessions(std::shared_ptr<const Model> model, SessionOptions options)
        : model_(std::move(model)), options_(std::move(options)) {}

    Session& for_head(const std::string& head) {
        auto& session = sessions_[head];
        if (!session) {
            SessionOptions options = options_;
            options.head = head;
            session = std::make_unique<Session>(model_, options);
        }
        return *session;
    }

    const Model& model() const { return *model_; }

private:
    std::shared_ptr<const Model> model_;
    SessionOptions options_;
    std::map<std::string, std::unique_ptr<Session>> sessions_;
};

}  // namespace mlff::app
