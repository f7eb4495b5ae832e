// SPDX-License-Identifier: MIT
// Gates (equivariant/gate.h) of all atoms, and their reverse.
#pragma once

#include <cuda_runtime.h>

#include "core/host_device.h"
#include "equivariant/gpu/engine_names.h"
#include "equivariant/plan/gate_plan.h"
#include "gpu/runtime/device_buffer.h"

namespace mlff::equivariant::gpu {

// The gate of a GatePlan.
template <class Real>
class DeviceGate {
public:
    DeviceGate(const GatePlan<Real>& plan, cudaStream_t stream);
    void apply(int64_t atom_count, const Real* in, Real* out, cudaStream_t stream) const;
    void reverse(int64_t atom_count, const Real* in, const Real* out_gradient, Real* in_gradient,
                 cudaStream_t stream) const;  // overwrites

    struct Scalar {
        int32_t from = 0, to = 0;
        bool is_odd = false;
    };
    struct Gated {  // one copy of a gated block
        int32_t gate = 0, from = 0, from_stride = 0, to = 0, to_stride = 0, components = 0;
    };
    struct View {
        const Scalar* scalars = nullptr;
        const Gated* gated = nullptr;
        int scalar_count = 0, gated_count = 0, in_size = 0, out_size = 0;
        Activation scalar_activation, odd_scalar_activation, gate_activation;

        MLFF_HOST_DEVICE const Activation& activation_of(const Scalar& scalar) const {
            return scalar.is_odd ? odd_scalar_activation : scalar_activation;
        }
    };

private:
    View view_;
    mlff::gpu::DeviceBuffer<Scalar> scalars_;
    mlff::gpu::DeviceBuffer<Gated> gated_;
};

}  // namespace mlff::equivariant::gpu
