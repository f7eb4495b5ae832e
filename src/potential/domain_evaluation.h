// SPDX-License-Identifier: MIT
// Capabilities of evaluators: a part of a system, together with others elsewhere.
#pragma once

#include "gpu/runtime/gpu_address.h"
#include "potential/domain.h"
#include "potential/evaluator.h"

namespace mlff {

class DomainEvaluation {
public:
    virtual ~DomainEvaluation() = default;
    // `edges` are those that own atoms receive. Energies, atom energies and descriptors are those of own atoms. Forces
    // and atom virials are of all atoms of the domain: add those of a ghost to those of the atom that it copies.
    virtual void evaluate_domain(const Domain& domain, const Edges& edges, const Outputs& outputs,
                                 ThreadTeam& team) = 0;
};

// For domains with RowTransport::shared.
class HaloSharing {
public:
    virtual ~HaloSharing() = default;
    // Where processes of the same machine find memory of the evaluator's GPU.
    virtual GpuAddress gpu_address() = 0;
    // Tries to read that of another; throws Error{device} with the reason if it cannot.
    virtual void reach_gpu(const GpuAddress& address) = 0;
};

}  // namespace mlff
