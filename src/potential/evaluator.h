// SPDX-License-Identifier: MIT
// What every backend of every model implements: energies and their derivatives, given atoms and edges. Everything else
// is a capability that a backend may have or lack.
#pragma once

#include "core/system_view.h"
#include "core/threads.h"
#include "neighbors/neighbor_list.h"
#include "potential/outputs.h"

namespace mlff {

class BatchEvaluation;
class DeviceEvaluation;
class DeviceStepper;
class DomainEvaluation;
class HaloSharing;
class MemoryForecasts;

// Scratch memory for one thread of the caller; made by Model::make_evaluator.
class Evaluator {
public:
    virtual ~Evaluator() = default;
    // `edges` is a full list with vectors and distances for the model's cutoff. Elements have been checked.
    virtual void evaluate(const SystemView& system, const Edges& edges, const Outputs& outputs, ThreadTeam& team) = 0;

    // Whether evaluate() reads its `edges`. If not, the evaluator finds neighbours itself; so many searches so far.
    virtual bool needs_edges() const { return true; }
    virtual int64_t neighbor_build_count() const { return 0; }

    // Capabilities: nullptr where the backend has none. They live as long as the evaluator.
    virtual BatchEvaluation* batches() { return nullptr; }           // batch_evaluation.h
    virtual DomainEvaluation* domains() { return nullptr; }          // domain_evaluation.h
    virtual HaloSharing* halo_sharing() { return nullptr; }          // domain_evaluation.h
    virtual DeviceEvaluation* device_pointers() { return nullptr; }  // device_evaluation.h
    virtual DeviceStepper* device_stepper() { return nullptr; }      // device_stepper.h
    virtual MemoryForecasts* memory_forecasts() { return nullptr; }  // memory_forecasts.h
};

}  // namespace mlff
