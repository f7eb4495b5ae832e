// SPDX-License-Identifier: MIT
// Replaces distances shorter than `c`, the shortest in the training data, before the network sees them:
//   seen(d) = c - w (x - x^3 + x^4 / 2),  x = min(1, (c - d) / w),  w = 0.3 c;  seen(d) = d from c on
// Two derivatives are continuous; below 0.7 c the value is 0.85 c. Filters use seen(d); directions and the repulsion
// use d.
#pragma once

#include "core/host_device.h"

namespace mlff::painn {

struct SeenDistance {
    double value = 0;  // angstrom
    double slope = 1;  // derivative with respect to the true distance
};

// `closest` 0: distances are not modified.
MLFF_HOST_DEVICE inline SeenDistance seen_distance(double closest, double distance) {
    if (!(distance < closest)) return {distance, 1};
    const double width = 0.3 * closest;
    double x = (closest - distance) / width;
    x = x < 1 ? x : 1;
    return {closest - width * x * (1 + x * x * (0.5 * x - 1)), 1 + x * x * (2 * x - 3)};
}

}  // namespace mlff::painn
