// SPDX-License-Identifier: MIT
// What the network sees of a distance shorter than the shortest `c` that it was trained on:
//   seen(d) = c - w (x - x^3 + x^4 / 2),  x = min(1, (c - d) / w),  w = 0.3 c;  seen(d) = d from c on
// Two derivatives are continuous; below 0.7 c it is 0.85 c. Filters are functions of seen(d), directions and the
// repulsion are not.
#pragma once

#include "core/host_device.h"

namespace mlff::painn {

struct SeenDistance {
    double value = 0;  // angstrom
    double slope = 1;  // by the true distance
};

// `closest` 0: all distances are seen as they are.
MLFF_HOST_DEVICE inline SeenDistance seen_distance(double closest, double distance) {
    if (!(distance < closest)) return {distance, 1};
    const double width = 0.3 * closest;
    double x = (closest - distance) / width;
    x = x < 1 ? x : 1;
    return {closest - width * x * (1 + x * x * (0.5 * x - 1)), 1 + x * x * (2 * x - 3)};
}

}  // namespace mlff::painn
