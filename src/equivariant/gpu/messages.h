// SPDX-License-Identifier: MIT
// Sums of messages over the edges of each atom, and the reverse. Single messages are never stored. Both directions
// gather: a thread block has one atom. Nothing is added atomically, so results repeat bit for bit.
#pragma once

#include <cuda_runtime.h>

#include "equivariant/gpu/device_tables.h"
#include "equivariant/gpu/engine_names.h"
#include "equivariant/gpu/layer_view.h"
#include "equivariant/plan/convolution_plan.h"
#include "gpu/runtime/device_buffer.h"

namespace mlff::equivariant::gpu {

// Edges grouped by receiver; see GpuEdges.
template <class Real>
struct EdgesView {
    int32_t atom_count = 0;
    const int64_t* first = nullptr;
    const int32_t* sender = nullptr;
    const double* distance = nullptr;
    const int32_t* elements = nullptr;  // [atom]
    const Real* harmonics = nullptr;    // [edge][harmonic_count]
    int harmonic_count = 0;

    bool operator==(const EdgesView&) const = default;
};
template <class Real>
struct EdgeGradientsView {
    Real* harmonics = nullptr;   // [edge][harmonic_count]
    double* distance = nullptr;  // [edge]
};

// Radial weights of each edge in memory, for layers whose weights depend on more than the distance.
template <class Real>
struct EdgeWeights {
    const Real* weights = nullptr;     // [edge][column_count]; nullptr: the weights are in tables
    Real* gradient = nullptr;          // the same
    const int64_t* reverse = nullptr;  // [edge]
    int column_count = 0;
};

template <class Real>
class DeviceMessages {
public:
    DeviceMessages(const ConvolutionPlan<Real>& plan, int harmonic_count, cudaStream_t stream);

    void prepare(cudaStream_t stream) { tables_.prepare(stream); }  // after the host's plan has been prepared

    // Writes the sums of messages and, unless it is null, of densities (0 if the layer has none) of each atom.
    void compute(const EdgesView<Real>& edges, const EdgeWeights<Real>& weights, RowsView<const Real> senders,
                 Real* sums, Real* densities, cudaStream_t stream) const;
    // Reverses the messages that each atom sends, along the reverses of its own edges. Writes `gradients` of the own
    // edges or, if `accumulate`, adds to them. Adds to senders_gradient (nullptr: not wanted) and to weights.gradient,
    // if there are EdgeWeights.
    void reverse(const EdgesView<Real>& edges, const EdgeWeights<Real>& weights, RowsView<const Real> senders,
                 const Real* sums_gradient, const Real* densities_gradient, const EdgeGradientsView<Real>& gradients,
                 bool accumulate, Real* senders_gradient, cudaStream_t stream) const;

    struct Path {
        int32_t in_offset = 0, in_components = 0, out_offset = 0, out_components = 0, stride = 0, column = 0;
        int32_t first_share = 0;  // in the shares of all paths, [a][c]
    };
    struct View : LayerView<Real> {
        SharesView<Real> reversed;  // for the reverse edges
        const Path* paths = nullptr;
        int path_count = 0, share_count = 0, edges_per_chunk = 0, most_feature_rows = 0;
        EdgeWeights<Real> edge_weights;
    };

private:
    View view(const EdgeWeights<Real>& weights, bool is_reverse) const;
    size_t shared_bytes(const View& view, bool is_reverse) const;

    const ConvolutionPlan<Real>& plan_;
    DeviceTables<Real> tables_;
    int share_count_ = 0;
    mlff::gpu::DeviceBuffer<Path> paths_;
    DeviceShares<Real> shares_, reversed_shares_;
};

}  // namespace mlff::equivariant::gpu
