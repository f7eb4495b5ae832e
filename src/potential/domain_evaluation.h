// SPDX-License-Identifier: MIT
// Capabilities of evaluators: to evaluate one domain of a system while other processes evaluate the others.
#pragma once

#include "gpu/runtime/gpu_address.h"
#include "potential/domain.h"
#include "potential/evaluator.h"

namespace mlff {

class DomainEvaluation {
public:
    virtual ~DomainEvaluation() = default;
    // `edges` are those that own atoms receive. Energies, atom energies and descriptors are those of own atoms. Forces
    // and atom virials also have entries for ghosts: add these to the atoms that the ghosts copy.
    virtual void evaluate_domain(const Domain& domain, const Edges& edges, const Outputs& outputs,
                                 ThreadTeam& team) = 0;
};

// For domains with RowTransport::shared or window.
class HaloSharing {
public:
    virtual ~HaloSharing() = default;
    // Lets other processes of the same machine open memory of the evaluator: of its GPU or, with window, of the host.
    virtual GpuAddress gpu_address(RowTransport transport) = 0;
    // Tries to read that memory of another evaluator. Throws Error{device} with the reason if it cannot.
    virtual void reach_gpu(const GpuAddress& address) = 0;
};

}  // namespace mlff
