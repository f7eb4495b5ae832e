// SPDX-License-Identifier: MIT
// Radial weights that depend on the features of both ends of an edge: a network evaluated for every edge, whose weights
// are kept in memory, and the reverse. The network's first layer is a sum of three parts, a function of the distance in
// a table and a row of each end:
//   x_1 = table(r) + ends[sender] + ends[receiver],  x_n+1 = f(x_n) W_n,  and the weights are the last of these.
#pragma once

#include <cuda_runtime.h>

#include <memory>
#include <vector>

#include "core/threads.h"
#include "gpu/engine/buffer_list.h"
#include "gpu/runtime/device_buffer.h"
#include "mace/gpu/device_tables.h"
#include "mace/gpu/edges.h"
#include "mace/gpu/linear.h"
#include "mace/gpu/messages.h"
#include "mace/plan/layer_plan.h"

namespace mlff::mace::gpu {

// "" if the GPU can evaluate the layer's network for every edge.
std::string why_no_edge_network(const Weights& weights, const Interaction& interaction);

template <class Real>
class DeviceEdgeNetwork {
public:
    // `below`: the layout of the features that the layer is given.
    DeviceEdgeNetwork(const plan::LayerPlan<Real>& plan, const plan::RowLayout& below, cudaStream_t stream);

    // Tables of pairs of these elements.
    void prepare(const std::vector<int>& elements, ThreadTeam& team, cudaStream_t stream);
    void list_buffers(BufferList& list, int64_t atom_count, int64_t edge_count, bool has_gradients);

    // The rows of the atoms in `tiles`, from their features.
    void compute_ends(const EdgesView<Real>& edges, const TilesView& tiles, RowsView<const Real> features,
                      cudaStream_t stream);
    Real* ends() const { return ends_rows_.data(); }  // [atom][ends_size()]
    int64_t ends_size() const { return ends_layout_.size; }
    // The weights of all edges, at most `edge_capacity`, from the rows of both ends.
    EdgeWeights<Real> compute(const EdgesView<Real>& edges, const EdgeGeometry& geometry, int64_t edge_capacity,
                              cudaStream_t stream);
    // The same weights, and their gradient set to zero, for messages to add to.
    EdgeWeights<Real> start_gradient(const EdgeGeometry& geometry, int64_t edge_capacity, cudaStream_t stream);
    // From that gradient to what it adds to the gradients of distances and of the features below (nullptr: not wanted).
    // These are of own atoms, whose edges and those of ghosts from them must have gradients.
    void reverse(const EdgesView<Real>& edges, const EdgesView<Real>& edges_with_ghosts, const EdgeGeometry& geometry,
                 int64_t edge_capacity, const TilesView& tiles, double* distance_gradient,
                 RowsView<Real> features_gradient, cudaStream_t stream);

private:
    struct Layer {                        // x_n+1 = f(x_n) W_n
        int in_width = 0, out_width = 0;  // padded
        Activation activation;            // f
        mlff::gpu::DeviceBuffer<Real> weight, transposed, bias;
        mlff::gpu::DeviceBuffer<Real> input;  // x_n, [edge][in_width]
    };

    const plan::LayerPlan<Real>& plan_;
    int width_ = 0;            // of the first layer, padded
    Interaction radial_part_;  // a network whose hidden functions are the first layer's share of the distance
    plan::RadialColumns columns_;
    std::unique_ptr<plan::EdgeFunctions> functions_;
    std::vector<std::unique_ptr<plan::RadialTable<Real>>> host_tables_;
    size_t receiver_stride_ = 0, sender_stride_ = 0;
    DeviceTables<Real> tables_;
    plan::RowLayout down_layout_, ends_layout_;
    DeviceLinear<Real> down_, ends_;
    std::vector<Layer> layers_;
    mlff::gpu::DeviceBuffer<Real> down_rows_, ends_rows_;                                   // [atom][...]
    mlff::gpu::DeviceBuffer<Real> weights_, weights_gradient_, gradient_, gradient_below_;  // [edge][...]
};

}  // namespace mlff::mace::gpu
