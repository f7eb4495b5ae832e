// SPDX-License-Identifier: MIT
// A capability of evaluators: positions and results in memory of the evaluator's GPU.
#pragma once

#include "potential/evaluator.h"

namespace mlff {

class DeviceEvaluation {
public:
    virtual ~DeviceEvaluation() = default;
    // Atomic numbers and the rest of the system are on the host. Begins when `stream`, a cudaStream_t, has done what
    // was asked of it before; complete on return. Throws Error{argument} that names a pointer of the host.
    virtual void evaluate_on_device(const SystemView& system, const DeviceOutputs& outputs, void* stream,
                                    ThreadTeam& team) = 0;
};

}  // namespace mlff
