// SPDX-License-Identifier: MIT
// One line on standard error that is written over again, on a terminal only: what is done and how long the rest takes.
#pragma once

#include <chrono>
#include <string>

namespace mlff::app {

class ProgressLine {
public:
    explicit ProgressLine(std::string prefix);
    ~ProgressLine();  // clears the line
    ProgressLine(const ProgressLine&) = delete;
    ProgressLine& operator=(const ProgressLine&) = delete;

    // `part` of the work is done, from 0 to 1. If it falls, other work has begun.
    void show(const std::string& phase, double part);
    // Clears the line, for other output; the next show() writes it again.
    void pause();

private:
    using Clock = std::chrono::steady_clock;
    std::string remaining_text(double part) const;

    std::string prefix_, phase_;
    int percent_ = -1;
    Clock::time_point start_ = Clock::now();
    bool is_terminal_;
};

}  // namespace mlff::app
