// SPDX-License-Identifier: MIT
// Messages with radial weights that never reach memory. The last layer of the radial network runs on tensor cores
// (radial_product.h) inside the kernels that sum messages and that reverse them. Two inputs of these kernels are
// prepared for every edge, one chunk of edges at a time: the hidden functions and the harmonics, in the order in which
// warps load them. So scratch memory does not grow with the number of edges. The couplings are constants of the kernels
// (path_couplings.h); the factor by which those of a path differ is part of its radial weights.
//
// Work is divided into lots: 32 channels of some blocks of features, with all paths that read them. A block of threads
// has the weights of one lot in shared memory. When its lot is finished it helps with another. An item of a lot is one
// atom, one block of features and, forward, paths whose sums fit into registers; in the reverse an item may be a part
// of the atom's edges. A warp takes an item and goes over its edges, eight at a time. No other warp writes its results,
// so no result is added to atomically and results repeat bit for bit, whoever takes an item. In the reverse, gradients
// of the senders' features are written for every edge, and gathered by the senders afterwards.
#pragma once

#include <cuda_runtime.h>

#include <vector>

#include "equivariant/gpu/device_tables.h"
#include "equivariant/gpu/edge_chunks.h"
#include "equivariant/gpu/engine_names.h"
#include "equivariant/gpu/messages.h"
#include "equivariant/gpu/path_couplings.h"
#include "equivariant/plan/convolution_plan.h"
#include "gpu/engine/radial_product.h"
#include "gpu/runtime/cuda_check.h"
#include "gpu/runtime/device_buffer.h"

namespace mlff::equivariant::gpu {

// For single precision only. In double precision, tables of the weights are faster.
class FusedMessages {
public:
    // Whether the kernels support the layer. A block may have `most_shared` bytes of shared memory.
    static bool can_run(const EdgeMessages& messages, size_t most_shared);

    FusedMessages(const ConvolutionPlan<float>& plan, int harmonic_count, bool is_fast, cudaStream_t stream);

    void prepare(cudaStream_t stream);  // copies new tables, after the host's plan has been prepared

    // Bytes of scratch memory per edge. Scratch memory must hold kEdgesPerTile edges, and should hold some 100,000.
    int64_t scratch_bytes_per_edge(bool is_reverse) const;
    // How often the reverse writes gradients of an edge's harmonics and distance, before it adds them up.
    int partial_count() const { return slot_count_; }

    struct Scratch {
        unsigned char* first = nullptr;
        int64_t bytes = 0;
        int64_t edge_capacity = 0;  // an upper bound of the number of edges
    };
    // Whether all edges fit in scratch memory at once, for the reverse too. What compute() prepares may then stay there
    // for reverse(), unless other layers use the memory in between.
    bool fits_at_once(const Scratch& scratch) const;

    // The same as DeviceMessages. Gradients of senders are gathered from the edges that their neighbours receive. If
    // senders are own atoms, `edges` must also have the edges of ghosts, and sums_gradient those of ghosts. If they are
    // own atoms and ghosts, `edges` need only have those of own atoms: each sender then gets what these contribute.
    // `reverse_edge` is [edge]. If `is_kept`, compute() prepares for reverse() too, and reverse() relies on it.
    void compute(const EdgesView<float>& edges, RowsView<const float> senders, float* sums, float* densities,
                 const Scratch& scratch, bool is_kept, cudaStream_t stream) const;
    struct SendersGradient {
        float* rows = nullptr;  // [atom][sender_size]; null: not wanted
        bool adds = false;      // to what is there; otherwise overwrites
    };
    void reverse(const EdgesView<float>& of_senders, const EdgesView<float>& edges, const int64_t* reverse_edge,
                 RowsView<const float> senders, const float* sums_gradient, const float* densities_gradient,
                 const EdgeGradientsView<float>& gradients, bool accumulate, const SendersGradient& senders_gradient,
                 const Scratch& scratch, bool is_kept, cudaStream_t stream) const;

    struct Path {
        int32_t out_offset = 0, out_components = 0;
        int32_t degree = 0;  // of the harmonics
    };
    static constexpr int kSlots = 4;
    struct Pass {  // forward: paths of one group whose sums fit into registers
        int32_t group = 0;
        int32_t kind = 0;  // PassKind: the components of the slots
        int32_t paths[kSlots] = {-1, -1, -1, -1};
    };
    struct Group {  // the paths of one block of features
        int32_t in_offset = 0, in_components = 0, stride = 0;
        int32_t first_path = 0, path_count = 0;
        int32_t first_pass = 0, pass_count = 0;
        int32_t cost = 0;  // of an atom, relative to other groups
    };
    struct Lot {  // adjacent groups; their paths and passes are adjacent, too
        int32_t first_channel = 0;
        int32_t first_group = 0, group_count = 0;
        int32_t first_path = 0, path_count = 0;
        int32_t first_pass = 0, pass_count = 0;
        int32_t first_slot = 0;    // in an edge's partials
        int32_t first_weight = 0;  // in View::weights
        int32_t cost = 0;
        int64_t cost_before = 0;  // of all lots before this one
    };
    static constexpr int kPartialStride = kMostHarmonics + 4;  // harmonics, the distance, padding
    struct View : TablesView<float> {
        const Path* paths = nullptr;
        const Pass* passes = nullptr;
        const Group* groups = nullptr;
        const Lot* lots = nullptr;
        const uint4* weights = nullptr;  // [lot][path][step][plane][lane]
        int lot_count = 0, slot_count = 0;
        int64_t cost = 0;  // of all lots
        // How many warps of a block have an item, one each; 0: warps take items as long as there are any.
        int warps_with_item = 0;
        int density_column = -1;             // of the tables
        int sums_size = 0, sender_size = 0;  // numbers per atom
        int tile_parts = 1;                  // reverse: into how many items the tiles of an atom are divided
        int function_count = 0;              // columns of the tables that are functions
        float function_scale = 1;
        float harmonic_scale = 1;  // undoes the scales of functions and weights, for harmonics and their gradients
        bool has_distance_power = false;  // harmonics are those of the vector: of degree l, times distance^l
        bool is_fast = false;
        // [reverse][lot]: how many items were taken beyond the first one of each warp. Cleared when edges are prepared,
        // for the reverse perhaps in the forward pass.
        int32_t* taken = nullptr;
        // Of the chunk:
        int64_t begin = 0, end = 0;          // edges
        bool is_last = false;                // the last chunk takes all remaining atoms, also those without edges
        uint4* functions = nullptr;          // [tile][step][plane][lane]
        uint4* function_slopes = nullptr;    // the same
        float* harmonics = nullptr;          // [tile][kMostHarmonics / 4][edge of the tile][4], scaled
        float* partials = nullptr;           // [edge][slot][kPartialStride]: gradients of harmonics and distance
        float* feature_gradients = nullptr;  // [edge][sender_size]
    };

private:
    View view() const;
    EdgeChunks chunks_of(const Scratch& scratch, bool is_reverse) const;
    template <class Visit>
    void for_each_chunk(const Scratch& scratch, bool is_reverse, const Visit& visit) const;
    void plan_lots(size_t most_shared);
    // How the kernels that work on items are launched. items_of(lot) is how many a lot has.
    struct Launch {
        mlff::gpu::LaunchShape shape;
        bool has_small_lots = false;
        int warps_with_item = 0;
    };
    template <class ItemsOf>
    Launch launch_for(const ItemsOf& items_of) const;
    void choose_lots(const Launch& launch, View& chunk) const;
    int tile_parts_for(int64_t item_count) const;
    void prepare_edges(const View& chunk, const EdgesView<float>& edges, cudaStream_t stream) const;

    const ConvolutionPlan<float>& plan_;
    int harmonic_count_;
    bool is_fast_;
    int multiprocessor_count_ = 1;
    // Powers of two that keep both halves of a number within half precision. function_scale_ only changes if functions
    // are much larger than those of networks usually are, so it does not depend on the tables present.
    double weight_scale_ = 1, function_scale_ = 16;
    std::vector<int> path_order_;  // the plan's paths sorted by block of features, the order of all arrays here
    std::vector<Path> host_paths_;
    std::vector<Group> host_groups_;
    std::vector<Lot> host_lots_, host_small_lots_;  // the small ones have one group each, for few atoms
    int slot_count_ = 0;
    int64_t cost_ = 0;  // of all lots
    mlff::gpu::DeviceBuffer<Path> paths_;
    mlff::gpu::DeviceBuffer<Pass> passes_;
    mlff::gpu::DeviceBuffer<Group> groups_;
    mlff::gpu::DeviceBuffer<Lot> lots_, small_lots_;
    mlff::gpu::DeviceBuffer<uint4> weights_;
    mlff::gpu::DeviceBuffer<int32_t> taken_;
    DeviceTables<float> tables_;
};

}  // namespace mlff::equivariant::gpu
