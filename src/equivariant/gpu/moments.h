// SPDX-License-Identifier: MIT
// Moments of the first layer (equivariant/plan/moment_map.h), summed over the edges of each atom, and the reverse.
// Nothing is added atomically, so results repeat bit for bit.
#pragma once

#include <cuda_runtime.h>

#include <span>

#include "core/host_device.h"
#include "equivariant/gpu/device_tables.h"
#include "equivariant/gpu/layer_view.h"
#include "equivariant/gpu/messages.h"
#include "equivariant/plan/convolution_plan.h"
#include "gpu/runtime/device_buffer.h"

namespace mlff::equivariant::gpu {

template <class Real>
class DeviceMoments {
public:
    static constexpr int kMostSenders = 4;  // sender elements in one call

    // The plan must have moments.
    DeviceMoments(const ConvolutionPlan<Real>& plan, int harmonic_count, cudaStream_t stream);

    void prepare(cudaStream_t stream) { tables_.prepare(stream); }  // after the host's plan has been prepared

    // Writes moments[z][atom][row][stride] over edges from atoms of element sender_elements[z], and densities[atom]
    // (nullptr: not wanted) over all edges.
    void compute(const EdgesView<Real>& edges, std::span<const int> sender_elements, Real* moments, Real* densities,
                 cudaStream_t stream) const;
    // Writes the gradients of these edges or, if `accumulate`, adds to them.
    void reverse(const EdgesView<Real>& edges, std::span<const int> sender_elements, const Real* moments_gradient,
                 const Real* densities_gradient, const EdgeGradientsView<Real>& gradients, bool accumulate,
                 cudaStream_t stream) const;

    // Senders have one component, so the shares of all paths are the rows of the moments.
    struct View : LayerView<Real> {
        int row_count = 0, padded_rows = 0, stride = 0, edges_per_chunk = 0;
    };
    struct Senders {
        int32_t count = 0, per_block = 1;
        int32_t elements[kMostSenders] = {};

        MLFF_HOST_DEVICE int32_t parts() const { return (count + per_block - 1) / per_block; }
        unsigned block_count(int32_t atom_count) const {
            return static_cast<unsigned>(atom_count) * static_cast<unsigned>(parts());
        }
    };

private:
    View view(bool is_reverse) const;
    static size_t shared_bytes(const View& view, bool is_reverse);
    static Senders senders_of(std::span<const int> elements, int64_t atom_count);

    const ConvolutionPlan<Real>& plan_;
    DeviceTables<Real> tables_;
    DeviceShares<Real> shares_;
};

}  // namespace mlff::equivariant::gpu
