// SPDX-License-Identifier: MIT
// Copies of radial tables in the GPU's memory. For CUDA sources only.
#pragma once

#include <cuda_runtime.h>

#include <memory>
#include <vector>

#include "gpu/runtime/device_buffer.h"
#include "mace/plan/radial_table.h"

namespace mlff::mace::gpu {

template <class Real>
class DeviceTables {
public:
    using HostTables = std::vector<std::unique_ptr<plan::RadialTable<Real>>>;

    // `host` has its final size, and will have tables by the time they are needed.
    explicit DeviceTables(const HostTables& host) : host_(host), tables_(host.size()) {}

    // Copies the tables that were made since the last call.
    void prepare(cudaStream_t stream) {
        std::vector<plan::RadialTableView<Real>> views(tables_.size());
        for (size_t i = 0; i < tables_.size(); ++i) {
            if (!host_[i]) continue;
            const Buffer<Real>& host = host_[i]->coefficients();
            if (tables_[i].size() == 0)
                tables_[i].upload(host.data(), static_cast<int64_t>(host.size()), "the model", stream);
            views[i] = host_[i]->view();
            views[i].coefficients = tables_[i].data();
        }
        views_.upload(views.data(), static_cast<int64_t>(views.size()), "the model", stream);
    }

    const plan::RadialTableView<Real>* views() const {
        return views_.data();
    }  // [receiver * receiver_stride + sender * sender_stride]

private:
    const HostTables& host_;
    std::vector<mlff::gpu::DeviceBuffer<Real>> tables_;
    mlff::gpu::DeviceBuffer<plan::RadialTableView<Real>> views_;
};

}  // namespace mlff::mace::gpu
