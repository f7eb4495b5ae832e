// SPDX-License-Identifier: MIT
// Copies of radial tables on the GPU. For CUDA sources only.
#pragma once

#include <cuda_runtime.h>

#include <memory>
#include <vector>

#include "equivariant/plan/radial_table.h"
#include "gpu/runtime/device_buffer.h"

namespace mlff::equivariant::gpu {

// For kernels.
template <class Real>
struct TablesView {
    const RadialTableView<Real>* tables = nullptr;  // [receiver * receiver_stride + sender * sender_stride]
    int receiver_stride = 0, sender_stride = 0;

    __device__ const RadialTableView<Real>& table(int receiver_element, int sender_element) const {
        return tables[receiver_element * receiver_stride + sender_element * sender_stride];
    }
};

template <class Real>
class DeviceTables {
public:
    using HostTables = std::vector<std::unique_ptr<RadialTable<Real>>>;

    // `host` must have its final size and outlive this object. Its tables may be made later.
    DeviceTables(const HostTables& host, size_t receiver_stride, size_t sender_stride)
        : host_(host),
          receiver_stride_(static_cast<int>(receiver_stride)),
          sender_stride_(static_cast<int>(sender_stride)),
          tables_(host.size()) {}

    // Copies the tables that were made since the last call.
    void prepare(cudaStream_t stream) {
        std::vector<RadialTableView<Real>> views(tables_.size());
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

    TablesView<Real> view() const { return {views_.data(), receiver_stride_, sender_stride_}; }

private:
    const HostTables& host_;
    int receiver_stride_, sender_stride_;
    std::vector<mlff::gpu::DeviceBuffer<Real>> tables_;
    mlff::gpu::DeviceBuffer<RadialTableView<Real>> views_;
};

}  // namespace mlff::equivariant::gpu
