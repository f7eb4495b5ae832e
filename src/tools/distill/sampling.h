// SPDX-License-Identifier: MIT
// Frames for a student to learn from: structures moved by dynamics with the teacher's forces and by noise, each
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
    std::vector<double> temperatures = {300, 600};  // K; one run of Langevin dynamics from each structure at each
    int frames_per_run = 10;
    int steps_between = 40;  // steps of dynamics from frame to frame
    double time_step = 0.5;  // fs
    double noise = 0.05;  // angstrom: each frame of dynamics is followed by one with noise of this size, which dynamics
                          // would not reach; 0 = none
    double largest_force = 50;  // eV/angstrom; frames above are skipped
    uint64_t seed = 1;
};

struct SampledFrames {
    std::vector<Frame> frames;  // with energy, forces, stress where there is a cell, and what they came from
    std::map<std::string, int64_t> skipped;  // how many, by reason
};

// Frames of structure number `index`. The same numbers for the same arguments, whatever was sampled before. A run that
// breaks ends there; the reason is counted.
SampledFrames sample_structure(Session& teacher, const Frame& structure, int64_t index, const SamplingOptions& options);

}  // namespace mlff
