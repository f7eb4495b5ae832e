// SPDX-License-Identifier: MIT
// Learning rate and loss weights as functions of progress: 0 at the start, 1 at the planned end.
#pragma once

#include <cstdint>

namespace mlff::train {

struct Schedule {
    int64_t steps = 0;   // planned, or
    double minutes = 0;  // planned wall time, if above zero
    double peak_rate = 1e-3, final_rate_fraction = 1e-3;
    int64_t warmup_steps = 500;
    double energy_weight = 1, energy_weight_final = 1, energy_ramp_start = 0.5;
    double ema_decay = 0.999;

    double progress(int64_t step, double seconds) const;  // within 0 ... 1
    // Linear warm-up, then half a cosine down to final_rate_fraction of the peak.
    double learning_rate(int64_t step, double progress) const;
    // The first weight until energy_ramp_start, then geometrically to the final one.
    double energy_weight_at(double progress) const;
    // Early averages decay faster, because they contain little but the initial weights.
    double ema_weight(int64_t step) const;
};

}  // namespace mlff::train
