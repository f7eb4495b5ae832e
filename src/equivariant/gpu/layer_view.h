// SPDX-License-Identifier: MIT
// Data of a layer for all kernels of messages and moments. For CUDA sources only.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <vector>

#include "equivariant/gpu/device_tables.h"
#include "equivariant/plan/convolution_plan.h"
#include "gpu/engine/warp.h"
#include "gpu/runtime/device_buffer.h"

namespace mlff::equivariant::gpu {

// A share is a sum of couplings times harmonics. A term of a share is value * harmonic[index]; a term of the gradient
// of a harmonic is value * (gradient of share[index]).
template <class Real>
struct ShareTerm {
    int32_t index = 0;
    Real value = 0;
};

// The terms of all shares, and of the gradients of all harmonics.
template <class Real>
struct ShareLists {
    std::vector<std::vector<ShareTerm<Real>>> of_shares, of_harmonics;
};
// The shares of the paths one after the other, each [a][c]. `is_reversed`: for the reverse edges.
template <class Real>
ShareLists<Real> list_shares(const std::vector<PathPlan<Real>>& paths, int harmonic_count, bool is_reversed) {
    ShareLists<Real> lists;
    lists.of_harmonics.resize(static_cast<size_t>(harmonic_count));
    for (const PathPlan<Real>& path : paths) {
        const size_t first = lists.of_shares.size();
        lists.of_shares.resize(first + static_cast<size_t>(path.share_count()));
        for (const auto& coupling : path.couplings) {
            const size_t share = first + static_cast<size_t>(coupling.share);
            const Real value = is_reversed ? path.reversal * coupling.value : coupling.value;
            lists.of_shares[share].push_back({coupling.harmonic, value});
            lists.of_harmonics[static_cast<size_t>(coupling.harmonic)].push_back({static_cast<int32_t>(share), value});
        }
    }
    return lists;
}

template <class Real>
struct SharesView {
    const int32_t* first_share_term = nullptr;  // [share + 1]
    const ShareTerm<Real>* share_terms = nullptr;
    const int32_t* first_harmonic_term = nullptr;  // [harmonic + 1]
    const ShareTerm<Real>* harmonic_terms = nullptr;
};

// A copy of the lists on the GPU.
template <class Real>
class DeviceShares {
public:
    void upload(const ShareLists<Real>& lists, cudaStream_t stream) {
        mlff::gpu::upload_lists(lists.of_shares, share_terms_, first_share_term_, stream);
        mlff::gpu::upload_lists(lists.of_harmonics, harmonic_terms_, first_harmonic_term_, stream);
    }
    SharesView<Real> view() const {
        return {first_share_term_.data(), share_terms_.data(), first_harmonic_term_.data(), harmonic_terms_.data()};
    }

private:
    mlff::gpu::DeviceBuffer<int32_t> first_share_term_, first_harmonic_term_;
    mlff::gpu::DeviceBuffer<ShareTerm<Real>> share_terms_, harmonic_terms_;
};

template <class Real>
struct LayerView : SharesView<Real>, TablesView<Real> {
    int density_column = -1;             // of the tables
    int sums_size = 0, sender_size = 0;  // numbers per atom
};
template <class Real>
LayerView<Real> view_layer(const ConvolutionPlan<Real>& plan, const DeviceShares<Real>& shares,
                           const DeviceTables<Real>& tables) {
    return {shares.view(), tables.view(), plan.columns.density, plan.sums_layout.size, plan.sender_layout.size};
}

}  // namespace mlff::equivariant::gpu
