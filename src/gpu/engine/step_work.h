// SPDX-License-Identifier: MIT
// The work of a stage of a step on the GPU. Needs no CUDA.
#pragma once

#include "core/stage_profile.h"

namespace mlff::gpu {

// Work per atom and per edge. The host learns the number of edges only after the step.
struct StepWork {
    StageWork of_atom, of_edge;

    StepWork operator+(const StepWork& other) const { return {of_atom + other.of_atom, of_edge + other.of_edge}; }
};
inline constexpr StepWork kUnknownStepWork = {{kUnknownWork, kUnknownWork}, {kUnknownWork, kUnknownWork}};

}  // namespace mlff::gpu
