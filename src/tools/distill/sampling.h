// SPDX-License-Identifier: MIT
// Samples training frames for a student: structures displaced by dynamics with the teacher's forces and by noise,
// labelled by the teacher.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/session.h"
#include "formats/extxyz.h"

namespace mlff {

struct SamplingOptions {
    std::vector<double> temperatures = {300, 600};  // K; one Langevin run per structure and temperature
    int frames_per_run = 10;
    int steps_between = 40;  // steps of dynamics from frame to frame
    double time_step = 0.5;  // fs
    double noise = 0.05;     // angstrom: after each frame of dynamics, one more with noise of this size, for positions
                             // that dynamics does not reach; 0 = none
    double largest_force = 50;  // eV/angstrom; frames with larger forces are skipped
    uint64_t seed = 1;
};

struct SampledFrames {
    std::vector<Frame> frames;               // with energy, forces, stress if there is a cell, and their origin
    std::map<std::string, int64_t> skipped;  // number of frames by reason
};

// Frames of structure number `index`. The result depends only on the arguments, not on earlier calls. A run that
// becomes unstable ends there, and the reason is counted.
SampledFrames sample_structure(Session& teacher, const Frame& structure, int64_t index, const SamplingOptions& options);

}  // namespace mlff
