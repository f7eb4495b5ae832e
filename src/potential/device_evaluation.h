// SPDX-License-Identifier: MIT
// A capability of evaluators: positions and results are in the memory of the evaluator's GPU.
#pragma once

#include "potential/evaluator.h"

namespace mlff {

class DeviceEvaluation {
public:
    virtual ~DeviceEvaluation() = default;
    // Positions and results are device pointers; atomic numbers and the rest of the system are on the host. Begins when
    // `stream`, a cudaStream_t, has finished its earlier work. Complete on return. Throws Error{argument} that names
    // the array if one of these pointers is to host memory.
    virtual void evaluate_on_device(const SystemView& system, const DeviceOutputs& outputs, void* stream,
                                    ThreadTeam& team) = 0;
};

}  // namespace mlff
