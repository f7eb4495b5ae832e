// SPDX-License-Identifier: MIT
// Messages of all atoms, summed over their edges and never stored, and the reverse. Both gather: a block of threads has
// one atom, and nothing is added atomically, so that results repeat bit for bit.
#pragma once

#include <cuda_runtime.h>

#include "gpu/runtime/device_buffer.h"
#include "mace/gpu/device_tables.h"
#include "mace/gpu/engine_names.h"
#include "mace/gpu/layer_view.h"
#include "mace/plan/layer_plan.h"

namespace mlff::mace::gpu {

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

// Radial weights of each edge in memory, where they are not functions of the distance alone.
template <class Real>
struct EdgeWeights {
    const Real* weights = nullptr;     // [edge][column_count]; nullptr: tables have them
    Real* gradient = nullptr;          // the same
    const int64_t* reverse = nullptr;  // [edge]
    int column_count = 0;
};

template <class Real>
class DeviceMessages {
public:
    DeviceMessages(const plan::LayerPlan<Real>& plan, int harmonic_count, cudaStream_t stream);

    void prepare(cudaStream_t stream) { tables_.prepare(stream); }  // after the host's plan was prepared

    // sums = sums of messages, densities = sums of densities (where the layer has them), for each atom
    void compute(const EdgesView<Real>& edges, const EdgeWeights<Real>& weights, RowsView<const Real> senders,
                 Real* sums, Real* densities, cudaStream_t stream) const;
    // Writes or, if `accumulate`, adds to the gradients of the edges as functions of the atom's own vectors; adds to
    // senders_gradient (nullptr: not wanted) and, where each edge has its own, to the gradient of the radial weights.
    void reverse(const EdgesView<Real>& edges, const EdgeWeights<Real>& weights, RowsView<const Real> senders,
                 const Real* sums_gradient, const Real* densities_gradient, const EdgeGradientsView<Real>& gradients,
                 bool accumulate, Real* senders_gradient, cudaStream_t stream) const;

    struct Path {
        int32_t in_offset = 0, in_components = 0, out_offset = 0, out_components = 0, stride = 0, column = 0;
        int32_t first_share = 0;  // in the shares of all paths, [a][c]
    };
    struct View : LayerView<Real> {
        SharesView<Real> reversed;  // for edges seen from the other end
        const Path* paths = nullptr;
        int path_count = 0, share_count = 0, edges_per_chunk = 0, most_feature_rows = 0;
        EdgeWeights<Real> edge_weights;
    };

private:
    View view(const EdgeWeights<Real>& weights, bool is_reverse) const;
    size_t shared_bytes(const View& view, bool is_reverse) const;

    const plan::LayerPlan<Real>& plan_;
    DeviceTables<Real> tables_;
    int share_count_ = 0;
    mlff::gpu::DeviceBuffer<Path> paths_;
    DeviceShares<Real> shares_, reversed_shares_;
};

}  // namespace mlff::mace::gpu
