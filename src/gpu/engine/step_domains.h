// SPDX-License-Identifier: MIT
// Evaluates one domain as a step. Domains exchange features between layers. Such a step is not a graph, because the
// host takes part in the exchange. For CUDA sources only.
#pragma once

#include "gpu/engine/shared_halo.h"
#include "gpu/engine/staged_halo.h"
#include "gpu/engine/step_run.h"
#include "potential/domain_evaluation.h"

namespace mlff::gpu {

class StepDomains : public DomainEvaluation, public HaloSharing {
public:
    StepDomains(StepRun& run, int device);

    void evaluate_domain(const Domain& domain, const Edges&, const Outputs& outputs, ThreadTeam& team) override;
    GpuAddress gpu_address(RowTransport transport) override;
    void reach_gpu(const GpuAddress& address) override;

private:
    void compute(const Domain& domain, const Wanted& wanted, ThreadTeam& team);
    void list_neighbors(const Domain& domain);
    StepHalo& set_halo(const Domain& domain);

    StepRun& run_;
    int device_;
    StagedHalo staged_halo_;
    SharedHalo shared_halo_;
    int64_t list_version_ = 0;  // Domain::list_version of the candidates
};

}  // namespace mlff::gpu
