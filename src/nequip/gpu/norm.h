// SPDX-License-Identifier: MIT
// The norm of a layer (nequip/plan/norm_plan.h) for all atoms, and its reverse.
#pragma once

#include <cuda_runtime.h>

#include "gpu/runtime/device_buffer.h"
#include "nequip/plan/norm_plan.h"

namespace mlff::nequip::gpu {

template <class Real>
class DeviceNorm {
public:
    DeviceNorm(const plan::NormPlan<Real>& plan, cudaStream_t stream);

    void apply(int64_t atom_count, const Real* in, Real* out, cudaStream_t stream) const;
    // Turns the gradient of the output into that of the input.
    void reverse(int64_t atom_count, const Real* in, Real* gradient, cudaStream_t stream) const;

    struct View {
        const double *scale = nullptr, *share = nullptr;
        double epsilon = 0;
        int size = 0;  // numbers per atom
    };

private:
    View view_;
    mlff::gpu::DeviceBuffer<double> scale_, share_;
};

}  // namespace mlff::nequip::gpu
