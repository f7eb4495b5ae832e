// SPDX-License-Identifier: MIT
// Copies of a layer's radial tables in the GPU's memory. For CUDA sources only.
#pragma once

#include <cuda_runtime.h>

#include <vector>

#include "device/device_buffer.h"
#include "mace/cpu/layer_plan.h"

namespace mlff::mace::cuda {

template <class Real>
class DeviceTables {
public:
    explicit DeviceTables(const cpu::LayerPlan<Real>& plan) : plan_(plan), tables_(plan.tables.size()) {}

    // Copies the tables that the plan made since the last call.
    void prepare(cudaStream_t stream) {
        std::vector<cpu::RadialTableView<Real>> views(tables_.size());
        for (size_t i = 0; i < tables_.size(); ++i) {
            if (!plan_.tables[i]) continue;
            const Buffer<Real>& host = plan_.tables[i]->coefficients();
            if (tables_[i].size() == 0) tables_[i].upload(host.data(), static_cast<int64_t>(host.size()), "the model", stream);
            views[i] = plan_.tables[i]->view();
            views[i].coefficients = tables_[i].data();
        }
        views_.upload(views.data(), static_cast<int64_t>(views.size()), "the model", stream);
    }

    const cpu::RadialTableView<Real>* views() const { return views_.data(); }  // [receiver * receiver_stride + sender * sender_stride]

private:
    const cpu::LayerPlan<Real>& plan_;
    std::vector<mlff::cuda::DeviceBuffer<Real>> tables_;
    mlff::cuda::DeviceBuffer<cpu::RadialTableView<Real>> views_;
};

}  // namespace mlff::mace::cuda
