// SPDX-License-Identifier: MIT
#include "train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace mlff::train {

double Schedule::progress(int64_t step, double seconds) const {
    const double done = minutes > 0 ? seconds / (60 * minutes)
                                    : static_cast<double>(step) / static_cast<double>(std::max<int64_t>(1, steps));
    return std::clamp(done, 0.0, 1.0);
}

double Schedule::learning_rate(int64_t step, double progress) const {
    const double warm =
        warmup_steps > 0 ? std::min(1.0, static_cast<double>(step + 1) / static_cast<double>(warmup_steps)) : 1.0;
    const double wave = 0.5 * (1 + std::cos(std::numbers::pi * progress));
    return peak_rate * warm * (final_rate_fraction + (1 - final_rate_fraction) * wave);
}

double Schedule::energy_weight_at(double progress) const {
    if (progress <= energy_ramp_start || energy_weight <= 0 || energy_weight_final <= 0) return energy_weight;
    const double share = (progress - energy_ramp_start) / std::max(1e-9, 1 - energy_ramp_start);
    return energy_weight * std::pow(energy_weight_final / energy_weight, share);
}

double Schedule::ema_weight(int64_t step) const {
    return 1 - std::min(ema_decay, (1.0 + static_cast<double>(step)) / (10.0 + static_cast<double>(step)));
}

}  // namespace mlff::train
