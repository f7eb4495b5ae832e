// SPDX-License-Identifier: MIT
#include "progress_line.h"

#include <unistd.h>

#include <cmath>
#include <cstdio>

#include "core/error.h"

namespace mlff::app {

ProgressLine::ProgressLine(std::string prefix) : prefix_(std::move(prefix)), is_terminal_(isatty(STDERR_FILENO)) {}

ProgressLine::~ProgressLine() {
    if (is_terminal_) std::fputs("\r\033[K", stderr);
}

void ProgressLine::pause() {
    if (!is_terminal_ || phase_.empty()) return;
    std::fputs("\r\033[K", stderr);
    std::fflush(stderr);
    phase_.clear();
}

void ProgressLine::show(const std::string& phase, double part) {
    const int percent = static_cast<int>(100 * part);
    if (!is_terminal_ || (percent == percent_ && phase == phase_)) return;
    if (percent < percent_) start_ = Clock::now();
    percent_ = percent;
    phase_ = phase;
    std::fprintf(stderr, "\r\033[K%s: %s, %d %%%s", prefix_.c_str(), phase.c_str(), percent,
                 remaining_text(part).c_str());
    std::fflush(stderr);
}

// Once it can be told; else "".
std::string ProgressLine::remaining_text(double part) const {
    constexpr double kLeastPart = 0.01, kLeastElapsed = 1, kMinute = 60;
    const double elapsed = std::chrono::duration<double>(Clock::now() - start_).count(),
                 left = elapsed * (1 - part) / part;
    if (!(part >= kLeastPart) || !(elapsed >= kLeastElapsed) || !std::isfinite(left)) return "";
    if (left < kMinute) return concat(", about ", std::llround(left), " s left");
    return concat(", about ", std::llround(left / kMinute), " min left");
}

}  // namespace mlff::app
