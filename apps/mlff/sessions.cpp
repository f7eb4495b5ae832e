// SPDX-License-Identifier: MIT
#include "sessions.h"

#include <iostream>

namespace mlff::app {

std::string head_of(const Frame& frame, const Model& model, const std::string& chosen) {
    const bool has_choice = model.summary().heads.size() > 1;
    const std::optional<std::string> own = has_choice ? frame.info_text("head") : std::nullopt;
    if (!own) return chosen;
    static bool has_warned = false;
    if (!chosen.empty() && *own != chosen && !has_warned) {
        std::cerr << "mlff: warning: frames with head=" << as_message(*own)
                  << " are evaluated with that head, not with " << chosen << "\n";
        has_warned = true;
    }
    return *own;
}

std::string head_to_write(const Session& session) {
    return session.model().summary().heads.size() > 1 ? session.head() : "";
}

}  // namespace mlff::app
