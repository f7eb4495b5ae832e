// SPDX-License-Identifier: MIT
// Messages whose radial weights are made where they are used: the last layer of the radial network runs on tensor cores
// (radial_product.h) inside the kernels that sum messages and that reverse them, so that weights never reach memory.
// What they read for every edge, its hidden functions and the products of couplings and harmonics ("shares"), is
// prepared for a chunk of edges at a time, in scratch memory of a size that does not grow with the number of edges.
//
// Work is handed out in items: 32 channels of one atom and those paths that share the senders' features. A warp has an
// item and walks the atom's edges eight at a time; it owns what it writes, so that nothing is added atomically and
// results repeat bit for bit. In reverse the gradients of the senders' features are written for every edge and gathered
// by the senders afterwards.
#pragma once

#include <cuda_runtime.h>

#include <vector>

#include "gpu/engine/radial_product.h"
#include "gpu/runtime/cuda_check.h"
#include "gpu/runtime/device_buffer.h"
#include "mace/gpu/device_tables.h"
#include "mace/gpu/engine_names.h"
#include "mace/gpu/layer_view.h"
#include "mace/gpu/messages.h"
#include "mace/plan/layer_plan.h"

namespace mlff::mace::gpu {

// In single precision; in double, tables of the weights are faster.
class FusedMessages {
public:
    // Whether these kernels have what the layer needs, with `most_shared` bytes of shared memory for a block.
    static bool can_run(const Interaction& interaction, size_t most_shared);

    FusedMessages(const plan::LayerPlan<float>& plan, int harmonic_count, size_t most_shared, bool is_fast,
                  cudaStream_t stream);

    void prepare(cudaStream_t stream);  // after the host's plan was prepared: copies new tables

    // Bytes that an edge needs in scratch memory; it should have room for some 100,000, and needs room for
    // kEdgesPerTile.
    int64_t scratch_bytes_per_edge(bool is_reverse) const;

    struct Scratch {
        unsigned char* first = nullptr;
        int64_t bytes = 0;
        int64_t edge_capacity = 0;  // there are never more edges
    };
    // The same as DeviceMessages. `reverse_edge`: for each edge that of the other end. Gradients of senders, which are
    // own atoms, are gathered from the edges that their neighbours receive: `edges` has those of ghosts too, and their
    // sums have gradients.
    void compute(const EdgesView<float>& edges, RowsView<const float> senders, float* sums, float* densities,
                 const Scratch& scratch, cudaStream_t stream) const;
    void reverse(const EdgesView<float>& own_edges, const EdgesView<float>& edges, const int64_t* reverse_edge,
                 RowsView<const float> senders, const float* sums_gradient, const float* densities_gradient,
                 const EdgeGradientsView<float>& gradients, bool accumulate, float* senders_gradient,
                 const Scratch& scratch, cudaStream_t stream) const;

    struct Path {
        int32_t out_offset = 0, out_components = 0;
        int32_t first_share = 0;  // in the edge's shares, [a][c], padded
    };
    static constexpr int kSlots = 4;
    struct Pass {  // forward: paths of one block of features, whose sums fit into registers
        int32_t in_offset = 0, in_components = 0, stride = 0;
        int32_t first_share = 0, share_count = 0;  // of the block's paths
        int32_t kind = 0;                          // which components the slots have
        int32_t paths[kSlots] = {-1, -1, -1, -1};
    };
    struct Group {  // reverse: all paths of one block of features
        int32_t in_offset = 0, in_components = 0, stride = 0;
        int32_t first_path = 0, path_count = 0;
        int32_t first_share = 0, share_count = 0;
    };
    // Terms of harmonics are [group][harmonic_count], of a share within the group.
    struct View : LayerView<float> {
        const Path* paths = nullptr;
        const Pass* passes = nullptr;
        const Group* groups = nullptr;
        const uint4* weights = nullptr;  // [slice][path][step][plane][lane]
        int path_count = 0, pass_count = 0, group_count = 0, slice_count = 0;
        int share_stride = 0, most_group_shares = 0;
        int function_count = 0;  // columns of the tables that are functions
        float function_scale = 1;
        bool is_fast = false;
        // of the chunk
        int64_t begin = 0, end = 0;        // edges
        bool is_last = false;              // it takes all atoms that are left, also those without edges
        uint4* functions = nullptr;        // [tile][step][plane][lane]
        uint4* function_slopes = nullptr;  // the same
        float* shares = nullptr;           // [tile][share_stride / 4][edge of the tile][4]
        float* partials = nullptr;  // [edge][slice][group][partial_stride]: gradients of the harmonics and the distance
        float* feature_gradients = nullptr;  // [edge][sender_size]
        int partial_stride = 0;
    };

private:
    View view() const;
    template <class Visit>
    void for_each_chunk(const Scratch& scratch, bool is_reverse, const Visit& visit) const;
    size_t weight_bytes() const;
    int warps_per_block(bool is_reverse) const;
    size_t shared_bytes(bool is_reverse) const;
    mlff::gpu::LaunchShape shape_for_items(int64_t item_count,
                                           bool is_reverse) const;  // of the kernels that work on items
    void upload_terms(cudaStream_t stream);

    const plan::LayerPlan<float>& plan_;
    int harmonic_count_;
    size_t most_shared_;
    bool is_fast_;
    int multiprocessor_count_ = 1;
    // Powers of two that keep both halves of a number within half precision. That of functions is the same for all
    // tables, present or not, as long as they are not much larger than a network's outputs are.
    double weight_scale_ = 1, function_scale_ = 16;
    int slice_count_ = 0, share_stride_ = 0, most_group_shares_ = 0;
    std::vector<int> path_order_;  // paths by block of features, as all arrays have them
    std::vector<Path> host_paths_;
    std::vector<Group> host_groups_;
    int pass_count_ = 0;
    mlff::gpu::DeviceBuffer<Path> paths_;
    mlff::gpu::DeviceBuffer<Pass> passes_;
    mlff::gpu::DeviceBuffer<Group> groups_;
    mlff::gpu::DeviceBuffer<uint4> weights_;
    DeviceShares<float> shares_;
    DeviceTables<float> tables_;
};

}  // namespace mlff::mace::gpu
