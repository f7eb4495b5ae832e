// SPDX-License-Identifier: MIT
// Radial weights that depend on the features of both atoms of an edge, and the reverse. The network is evaluated for
// every edge, and the weights of all edges are kept in memory. Its first layer is a sum of three terms: a function of
// the distance, which is tabulated, and one term of each atom (its "ends"):
//   x_1 = table(r) + ends[sender] + ends[receiver],  x_n+1 = f(x_n) W_n;  the last of these are the weights.
#pragma once

#include <cuda_runtime.h>

#include <memory>
#include <vector>

#include "core/threads.h"
#include "equivariant/gpu/device_tables.h"
#include "equivariant/gpu/edges.h"
#include "equivariant/gpu/linear.h"
#include "equivariant/gpu/messages.h"
#include "gpu/engine/buffer_list.h"
#include "gpu/runtime/device_buffer.h"
#include "mace/gpu/engine_names.h"
#include "mace/plan/layer_plan.h"

namespace mlff::mace::gpu {

// Why the GPU cannot evaluate the layer's network; "" if it can.
std::string why_no_edge_network(const Weights& weights, const Interaction& interaction);

template <class Real>
class DeviceEdgeNetwork {
public:
    // `below`: the layout of the layer's input features.
    DeviceEdgeNetwork(const plan::LayerPlan<Real>& plan, const plan::RowLayout& below, cudaStream_t stream);

    // Makes tables for pairs of these elements.
    void prepare(const std::vector<int>& elements, ThreadTeam& team, cudaStream_t stream);
    void list_buffers(BufferList& list, int64_t atom_count, int64_t edge_count, bool has_gradients);

    // Computes the ends of the atoms in `tiles` from their features.
    void compute_ends(const EdgesView<Real>& edges, const TilesView& tiles, RowsView<const Real> features,
                      cudaStream_t stream);
    Real* ends() const { return ends_rows_.data(); }  // [atom][ends_size()]
    int64_t ends_size() const { return ends_layout_.size; }
    // Computes the weights of all edges, at most `edge_capacity`, from the ends of both atoms.
    EdgeWeights<Real> compute(const EdgesView<Real>& edges, const EdgeGeometry& geometry, int64_t edge_capacity,
                              cudaStream_t stream);
    // Returns the same weights, with their gradient set to zero. Messages add to it.
    EdgeWeights<Real> start_gradient(const EdgeGeometry& geometry, int64_t edge_capacity, cudaStream_t stream);
    // Adds to the gradients of distances and of the features below (nullptr: not wanted), for own atoms. The weights of
    // all edges with an own atom must have their gradients, also of edges that ghosts receive.
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
    Interaction radial_part_;  // a network whose hidden functions are table(r) above
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
