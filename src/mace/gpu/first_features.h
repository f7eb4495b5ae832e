// SPDX-License-Identifier: MIT
// What depends on element, charge and spin alone, on the device: the first features, what atoms send in the first
// layer, and energies.
#pragma once

#include <cuda_runtime.h>

#include <vector>

#include "core/system_view.h"
#include "equivariant/plan/row_layout.h"
#include "gpu/engine/totals.h"
#include "gpu/runtime/device_buffer.h"
#include "mace/gpu/engine_names.h"
#include "mace/plan/names.h"
#include "mace/weights/weights.h"

namespace mlff::mace::gpu {

template <class Real>
class FirstFeatures {
public:
    // Computes on the host. Does nothing if charge and spin are unchanged, or if the model does not use them. Throws
    // Error{system} for a charge or spin that the model does not know.
    void update(const Weights& weights, int head, const SystemView& system, const plan::RowLayout& layout,
                const plan::RowLayout& sender_layout, cudaStream_t stream);

    const mlff::gpu::DeviceBuffer<Real>& features() const { return features_; }  // [element][layout.size]
    const mlff::gpu::DeviceBuffer<Real>& senders() const { return senders_; }    // [element][sender_layout.size]
    const ElementEnergy* energies() const { return energies_.data(); }           // [element]

private:
    void upload_energies(const Weights& weights, int head, const std::vector<double>& embedding, cudaStream_t stream);

    bool is_there_ = false;
    double charge_ = 0, spin_ = 0;  // of the last update
    mlff::gpu::DeviceBuffer<Real> features_, senders_;
    mlff::gpu::DeviceBuffer<ElementEnergy> energies_;
};

}  // namespace mlff::mace::gpu
