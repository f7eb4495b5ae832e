// SPDX-License-Identifier: MIT
// A word before a long run that will not fit in memory.
#pragma once

#include <string>

#include "core/system_view.h"
#include "engine/session.h"
#include "tools/plan/calibration.h"

namespace mlff::app {

// Only where there is a calibration; on a GPU sessions refuse by themselves what does not fit. Nothing is ever refused
// here.
class PlanWarning {
public:
    PlanWarning(std::string model, bool exact_radial) : model_(std::move(model)), exact_radial_(exact_radial) {}

    // One line on standard error for the first system that is predicted to need more memory than there is. `where`
    // begins it. Only systems larger than those before are looked at.
    void look_at(Session& session, const SystemView& system, const std::string& where);

private:
    std::string model_;
    bool exact_radial_;
    bool is_over_ = false;  // warned, or there is nothing to warn with
    int64_t largest_ = 0;   // atoms looked at
    std::vector<plan::Calibration> candidates_;
    bool is_read_ = false;
};

}  // namespace mlff::app
