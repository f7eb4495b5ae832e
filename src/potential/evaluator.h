// SPDX-License-Identifier: MIT
// The interface of every backend of every model: energies and their derivatives from atoms and edges. Everything else
// is an optional capability.
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

// Owns scratch memory, so only one thread may use it at a time. Made by Model::make_evaluator.
class Evaluator {
public:
    virtual ~Evaluator() = default;
    // `edges` has every pair within the model's cutoff from both ends, with vectors and distances. The caller has
    // checked that the model knows all elements.
    virtual void evaluate(const SystemView& system, const Edges& edges, const Outputs& outputs, ThreadTeam& team) = 0;

    // Whether evaluate() reads its `edges`. If not, the evaluator finds neighbours itself.
    virtual bool needs_edges() const { return true; }
    virtual int64_t neighbor_build_count() const { return 0; }  // its own searches so far

    // Capabilities: nullptr if the backend lacks one. They live as long as the evaluator.
    virtual BatchEvaluation* batches() { return nullptr; }           // batch_evaluation.h
    virtual DomainEvaluation* domains() { return nullptr; }          // domain_evaluation.h
    virtual HaloSharing* halo_sharing() { return nullptr; }          // domain_evaluation.h
    virtual DeviceEvaluation* device_pointers() { return nullptr; }  // device_evaluation.h
    virtual DeviceStepper* device_stepper() { return nullptr; }      // device_stepper.h
    virtual MemoryForecasts* memory_forecasts() { return nullptr; }  // memory_forecasts.h
};

}  // namespace mlff
