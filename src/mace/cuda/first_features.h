// SPDX-License-Identifier: MIT
// What depends on the elements, the charge and the spin alone, on the device: the first features, what they send, and energies.
#pragma once

#include <cuda_runtime.h>

#include <vector>

#include "core/system_view.h"
#include "cuda_engine/totals.h"
#include "device/device_buffer.h"
#include "mace/cpu/row_layout.h"
#include "mace/cuda/engine_names.h"
#include "mace/weights.h"

namespace mlff::mace::cuda {

template <class Real>
class FirstFeatures {
public:
    // Done on the host, and again only when charge or spin have changed for a model that takes them. Throws Error{system} for those it does not know.
    void update(const Weights& weights, int head, const SystemView& system, const cpu::RowLayout& layout, const cpu::RowLayout& sender_layout, cudaStream_t stream);

    const mlff::cuda::DeviceBuffer<Real>& features() const { return features_; }  // [element][layout.size]
    const mlff::cuda::DeviceBuffer<Real>& senders() const { return senders_; }    // [element][sender_layout.size], of the first layer
    const ElementEnergy* energies() const { return energies_.data(); }            // [element]

private:
    void upload_energies(const Weights& weights, int head, const std::vector<double>& embedding, cudaStream_t stream);

    bool is_there_ = false;
    double charge_ = 0, spin_ = 0;  // that it is for
    mlff::cuda::DeviceBuffer<Real> features_, senders_;
    mlff::cuda::DeviceBuffer<ElementEnergy> energies_;
};

}  // namespace mlff::mace::cuda
