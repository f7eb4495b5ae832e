// SPDX-License-Identifier: MIT
// How fast the fastest atoms of a run vibrate: this limits the time step.
#pragma once

#include <cstdint>

#include "tools/validate/trajectory.h"

namespace mlff::validate {

struct FastestVibration {
    double period = 0;  // fs
    int32_t atomic_number = 0;
};

// From the forces in a bath, by element: harmonic atoms of mass m have w^2 = <|F|^2> / (m k T), where w^2 is the sum
// over three directions. An atom in one stiff bond has nearly the frequency of that bond, other atoms a higher one than
// any of their vibrations, so the period is rather too short than too long. `run` must have snapshots.
FastestVibration fastest_vibration(const Run& run, double temperature);

}  // namespace mlff::validate
