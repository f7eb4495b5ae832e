// SPDX-License-Identifier: MIT
#include "equivariant/gpu/fused_messages.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "core/error.h"
#include "equivariant/gpu/fused_gradients.cuh"
#include "equivariant/gpu/fused_kernels.h"
#include "equivariant/gpu/fused_prepare.cuh"
#include "gpu/runtime/cuda_check.h"

namespace mlff::equivariant::gpu {
namespace {

using mlff::gpu::check;
using mlff::gpu::launch;
using mlff::gpu::LaunchShape;

// Distributes the paths of one block of features over passes. Each pass is of the kind that takes the most rows.
void plan_passes(int group, int in_components, std::vector<std::pair<int, int>> paths_and_rows,
                 std::vector<FusedMessages::Pass>& passes) {
    const std::vector<std::vector<int>> kinds = {{1, 3, 5, 7}, {1, 3, 3, 5}, {5, 7}};
    while (!paths_and_rows.empty()) {
        FusedMessages::Pass best;
        int most_rows = 0;
        for (int kind = 0; kind < static_cast<int>(kinds.size()); ++kind) {
            if ((kind == kScalarPass) != (in_components == 1)) continue;
            FusedMessages::Pass pass;
            pass.group = group;
            pass.kind = kind;
            int rows = 0;
            auto left = paths_and_rows;
            for (size_t slot = 0; slot < kinds[static_cast<size_t>(kind)].size(); ++slot) {
                const auto found = std::find_if(left.begin(), left.end(), [&](const auto& path) {
                    return path.second == kinds[static_cast<size_t>(kind)][slot];
                });
                if (found == left.end()) continue;
                pass.paths[slot] = found->first;
                rows += found->second;
                left.erase(found);
            }
            if (rows > most_rows) {
                most_rows = rows;
                best = pass;
            }
        }
        for (int path : best.paths) std::erase_if(paths_and_rows, [&](const auto& left) { return left.first == path; });
        passes.push_back(best);
    }
}

int function_count_of(const EdgeMessages& messages) {
    const RadialColumns columns = columns_of_hidden(messages);
    return columns.hidden_count + (columns.has_constant ? 1 : 0);
}

// The couplings of a path are those of the kernels times this factor.
template <class Couplings>
double factor_of(const Convolution::Path& path) {
    double product = 0, square = 0;
    for (const Convolution::Coupling& coupling : path.couplings)
        for (int i = 0; i < Couplings::kTermCount; ++i) {
            const PathTerm& term = Couplings::kTerms.of[i];
            if (term.in != coupling.in || term.out != coupling.out ||
                term.harmonic + path.degree * path.degree != coupling.harmonic)
                continue;
            product += coupling.value * static_cast<double>(term.value);
            square += static_cast<double>(term.value) * static_cast<double>(term.value);
        }
    const bool has_all = static_cast<int>(path.couplings.size()) == Couplings::kTermCount;
    if (!has_all || square == 0) fail(Status::internal, "couplings are not those of e3nn");
    return product / square;
}
double coupling_factor(const Convolution& convolution, const Convolution::Path& path) {
    double factor = 0;
    const int in = convolution.in[path.in_block].irrep.dimension(),
              out = convolution.out[path.out_block].irrep.dimension();
    const auto visit = [&](auto components, auto rows) {
        visit_couplings<decltype(components)::value, decltype(rows)::value>(
            path.degree, [&]<class Couplings>(Couplings) { factor = factor_of<Couplings>(path); });
    };
    visit_path_shape<kMostComponents>(in, out, visit);
    return factor;
}

// Whether paths have harmonics of vectors instead of directions. The kernels know these two cases.
bool has_distance_power(const Convolution& convolution) {
    return std::ranges::any_of(convolution.paths, [](const auto& path) { return path.distance_power != 0; });
}
bool is_power_known(const Convolution& convolution) {
    const bool has_power = has_distance_power(convolution);
    return std::ranges::all_of(convolution.paths,
                               [&](const auto& path) { return path.distance_power == (has_power ? path.degree : 0); });
}

constexpr size_t kFixedShared = 1024;  // bytes per block: used by the system and by the kernels' other variables
size_t weight_bytes_of(size_t path_count) { return path_count * kWeightsOfPath * sizeof(uint4); }

// What a group's atom costs beside other groups': each path has a product of radial functions, and each share two
// multiplications forward and four in the reverse.
int cost_of_path(int in_components, int out_components) { return 10 + in_components * out_components; }

}  // namespace

bool FusedMessages::can_run(const EdgeMessages& messages, size_t most_shared) {
    if (!ends_in_linear_layer(messages.radial_network) || messages.edge_input == EdgeMessages::EdgeInput::features)
        return false;
    if (function_count_of(messages) > kSteps * kFunctionsPerStep || messages.convolution.paths.empty()) return false;
    if (!is_power_known(messages.convolution)) return false;
    std::map<int, size_t> paths_of_block;
    size_t most_paths = 0;
    for (const Convolution::Path& path : messages.convolution.paths) {
        if (messages.convolution.in[path.in_block].irrep.dimension() > kMostComponents ||
            messages.convolution.out[path.out_block].irrep.dimension() > kMostComponents ||
            path.degree > kMostHarmonicDegree)
            return false;
        most_paths = std::max(most_paths, ++paths_of_block[path.in_block]);
    }
    return weight_bytes_of(most_paths) + kFixedShared <= most_shared;
}

FusedMessages::FusedMessages(const ConvolutionPlan<float>& plan, int harmonic_count, bool is_fast, cudaStream_t stream)
    : plan_(plan),
      harmonic_count_(harmonic_count),
      is_fast_(is_fast),
      tables_(plan.tables, plan.receiver_stride, plan.sender_stride) {
    int device = 0, most_shared = 0;
    check(cudaGetDevice(&device), "asking for the device");
    check(cudaDeviceGetAttribute(&multiprocessor_count_, cudaDevAttrMultiProcessorCount, device),
          "asking for the device");
    check(cudaDeviceGetAttribute(&most_shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
          "asking for the device");
    const EdgeMessages& messages = plan.messages;
    std::vector<Pass> passes;
    for (size_t block = 0; block < plan.sender_layout.blocks.size(); ++block) {
        const RowBlock& rows = plan.sender_layout.blocks[block];
        Group group;
        group.in_offset = rows.offset;
        group.in_components = rows.components;
        group.stride = rows.stride;
        group.first_path = static_cast<int32_t>(host_paths_.size());
        group.first_pass = static_cast<int32_t>(passes.size());
        group.cost = 1;
        std::vector<std::pair<int, int>> paths_and_rows;
        for (size_t p = 0; p < plan.paths.size(); ++p) {
            const PathPlan<float>& path = plan.paths[p];
            if (messages.convolution.paths[p].in_block != static_cast<int>(block)) continue;
            paths_and_rows.emplace_back(static_cast<int>(host_paths_.size()), path.out_components);
            path_order_.push_back(static_cast<int>(p));
            host_paths_.push_back({path.out_offset, path.out_components, messages.convolution.paths[p].degree});
            group.cost += cost_of_path(rows.components, path.out_components);
        }
        group.path_count = static_cast<int32_t>(paths_and_rows.size());
        plan_passes(static_cast<int>(block), rows.components, std::move(paths_and_rows), passes);
        group.pass_count = static_cast<int32_t>(passes.size()) - group.first_pass;
        host_groups_.push_back(group);
    }
    plan_lots(static_cast<size_t>(most_shared));
    upload(paths_, host_paths_, stream);
    upload(passes_, passes, stream);
    upload(groups_, host_groups_, stream);
    upload(lots_, host_lots_, stream);
    upload(small_lots_, host_small_lots_, stream);
    taken_.resize_discard(2 * static_cast<int64_t>(host_lots_.size()), "the model");

    const DenseLayer& last = messages.radial_network.layers.back();
    std::vector<double> factors;
    for (int path : path_order_)
        factors.push_back(last.activation.factor *
                          coupling_factor(messages.convolution, messages.convolution.paths[static_cast<size_t>(path)]));
    const auto weight_of = [&](int path, int function, int channel) {
        const Convolution::Path& plain =
            messages.convolution.paths[static_cast<size_t>(path_order_[static_cast<size_t>(path)])];
        if (channel >= messages.convolution.in[plain.in_block].multiplicity || function > last.in_width) return 0.0;
        const auto column = static_cast<size_t>(plain.weight_offset + channel);
        const double factor = factors[static_cast<size_t>(path)];
        if (function == last.in_width) return last.bias.empty() ? 0.0 : factor * last.bias[column];
        return factor * last.weight[static_cast<size_t>(function) * static_cast<size_t>(last.out_width) + column];
    };
    double largest = 0;
    for (const Lot& lot : host_lots_)
        for (int path = lot.first_path; path < lot.first_path + lot.path_count; ++path)
            for (int function = 0; function <= last.in_width; ++function)
                for (int c = 0; c < kChannelsPerSlice; ++c)
                    largest = std::max(largest, std::abs(weight_of(path, function, lot.first_channel + c)));
    // In half precision, the low half of a number of this size is still far above the smallest number.
    constexpr double kLargest = 1 << 12;
    if (largest > 0) weight_scale_ = std::exp2(std::floor(std::log2(kLargest / largest)));
    std::vector<uint4> weights;
    constexpr int kPlanes = RadialProduct::kWeightPlanes;
    weights.reserve(
        static_cast<size_t>(host_lots_.back().first_weight + host_lots_.back().path_count * kWeightsOfPath));
    weights.resize(weights.capacity());
    uint4* to = weights.data();
    for (const Lot& lot : host_lots_)
        for (int path = lot.first_path; path < lot.first_path + lot.path_count; ++path)
            for (int step = 0; step < kSteps; ++step, to += kPlanes * 32)
                for (int lane = 0; lane < 32; ++lane) {
                    float numbers[4][4];
                    for (int i = 0; i < 4; ++i)
                        for (int c = 0; c < 4; ++c)
                            numbers[i][c] = static_cast<float>(
                                weight_scale_ * weight_of(path, step * kFunctionsPerStep + lane % 4 * 4 + i,
                                                          lot.first_channel + lane / 4 * 4 + c));
                    RadialProduct::store_weights(numbers, to + lane);
                }
    upload(weights_, weights, stream);
}

// A lot takes as many adjacent groups as have its channels, fit in a block's memory, and leave enough of a
// multiprocessor's memory to its cache.
void FusedMessages::plan_lots(size_t most_shared) {
    constexpr size_t kEnoughPaths = 18;
    const auto most_paths = static_cast<int>(std::min(kEnoughPaths, (most_shared - kFixedShared) / weight_bytes_of(1)));
    int most_channels = 0;
    for (const Group& group : host_groups_) most_channels = std::max(most_channels, group.stride);
    int32_t weight_count = 0;
    for (int channel = 0; channel < most_channels; channel += kChannelsPerSlice) {
        bool is_open = false;
        for (size_t g = 0; g < host_groups_.size(); ++g) {
            const Group& group = host_groups_[g];
            if (group.stride <= channel) {
                is_open = false;
                continue;
            }
            Lot small;
            small.first_channel = channel;
            small.first_group = static_cast<int32_t>(g);
            small.group_count = 1;
            small.first_path = group.first_path;
            small.path_count = group.path_count;
            small.first_pass = group.first_pass;
            small.pass_count = group.pass_count;
            small.first_slot = slot_count_++;
            small.first_weight = std::exchange(weight_count, weight_count + group.path_count * kWeightsOfPath);
            small.cost = group.cost;
            small.cost_before = std::exchange(cost_, cost_ + group.cost);
            host_small_lots_.push_back(small);
            if (!is_open || host_lots_.back().path_count + group.path_count > most_paths) {
                host_lots_.push_back(small);
                is_open = true;
                continue;
            }
            Lot& lot = host_lots_.back();
            lot.group_count += 1;
            lot.path_count += group.path_count;
            lot.pass_count += group.pass_count;
            lot.cost += group.cost;
        }
    }
}

void FusedMessages::prepare(cudaStream_t stream) {
    tables_.prepare(stream);
    double largest = 0;
    for (const auto& table : plan_.tables) {
        if (!table) continue;
        const Buffer<float>& host = table->coefficients();
        const auto width = static_cast<size_t>(table->view().column_count);
        for (size_t at = 0; at < host.size(); ++at)  // rows of values, and rows that slopes are made from
            largest = std::max(largest, std::abs(static_cast<double>(host[at])) *
                                            (at / width % kSplineRows == 0 ? 1 : table->view().inverse_step));
    }
    while (largest * function_scale_ > (1 << 15)) function_scale_ /= 2;
}

// If there are few items, each has a warp of its own, on as many multiprocessors as possible; the other warps help to
// load weights. Otherwise there are no more blocks than run at the same time.
template <class ItemsOf>
FusedMessages::Launch FusedMessages::launch_for(const ItemsOf& items_of) const {
    constexpr int kFewWarps = 4;
    const auto shape = [&](int64_t blocks, const std::vector<Lot>& lots) {
        int most_paths = 0;
        for (const Lot& lot : lots) most_paths = std::max(most_paths, lot.path_count);
        return LaunchShape{dim3(static_cast<unsigned>(std::max<int64_t>(blocks, 1))), 32 * kWarpsOfItems,
                           weight_bytes_of(static_cast<size_t>(most_paths))};
    };
    for (const bool has_small_lots : {true, false}) {
        const std::vector<Lot>& lots = has_small_lots ? host_small_lots_ : host_lots_;
        const int warps = has_small_lots ? kFewWarps : kWarpsOfItems;
        int64_t blocks = 0;
        for (const Lot& lot : lots) blocks += (items_of(lot) + warps - 1) / warps;
        if (blocks <= multiprocessor_count_) return {shape(blocks, lots), has_small_lots, warps};
    }
    return {shape(multiprocessor_count_, host_lots_), false, 0};
}
void FusedMessages::choose_lots(const Launch& launch, View& chunk) const {
    chunk.warps_with_item = launch.warps_with_item;
    if (!launch.has_small_lots) return;
    chunk.lots = small_lots_.data();
    chunk.lot_count = static_cast<int>(host_small_lots_.size());
}

// Items differ in length. Where a warp would get few of them, each is divided, so that warps end at the same time.
int FusedMessages::tile_parts_for(int64_t item_count) const {
    constexpr int64_t kItemsPerWarp = 4, kMostParts = 4;
    const int64_t warps = int64_t{multiprocessor_count_} * kWarpsOfItems;
    return static_cast<int>(
        std::clamp(kItemsPerWarp * warps / std::max<int64_t>(item_count, 1), int64_t{1}, kMostParts));
}

int64_t FusedMessages::scratch_bytes_per_edge(bool is_reverse) const {
    const int64_t functions =
        int64_t{kSteps} * RadialProduct::kFunctionPlanes * 32 * static_cast<int64_t>(sizeof(uint4)) / kEdgesPerTile;
    const int64_t harmonics = kMostHarmonics * static_cast<int64_t>(sizeof(float));
    if (!is_reverse) return functions + harmonics;
    const int64_t partials = int64_t{partial_count()} * kPartialStride * static_cast<int64_t>(sizeof(float));
    return 2 * functions + harmonics + partials + plan_.sender_layout.size * static_cast<int64_t>(sizeof(float));
}

FusedMessages::View FusedMessages::view() const {
    View view{tables_.view()};
    view.density_column = plan_.columns.density;
    view.sums_size = plan_.sums_layout.size;
    view.sender_size = plan_.sender_layout.size;
    view.paths = paths_.data();
    view.passes = passes_.data();
    view.groups = groups_.data();
    view.lots = lots_.data();
    view.weights = weights_.data();
    view.lot_count = static_cast<int>(host_lots_.size());
    view.slot_count = slot_count_;
    view.cost = cost_;
    view.function_scale = static_cast<float>(function_scale_);
    view.harmonic_scale = static_cast<float>(1 / (weight_scale_ * function_scale_));
    view.has_distance_power = has_distance_power(plan_.messages.convolution);
    view.is_fast = is_fast_;
    view.taken = taken_.data();
    view.function_count = padded(function_count_of(plan_.messages));
    return view;
}

// Several warps share a tile if there are few.
void FusedMessages::prepare_edges(const View& chunk, const EdgesView<float>& edges, cudaStream_t stream) const {
    constexpr int64_t kFewTiles = 8192;
    const int64_t tiles = (chunk.end - chunk.begin) / kEdgesPerTile;
    const bool is_few = tiles < kFewTiles, has_slopes = chunk.function_slopes != nullptr;
    launch("preparing edges",
           has_slopes ? (is_few ? prepare_kernel<true, kSteps> : prepare_kernel<true, 1>)
                      : (is_few ? prepare_kernel<false, kSteps> : prepare_kernel<false, 1>),
           (tiles * (is_few ? kSteps : 1) + kWarps - 1) / kWarps, kBlockThreads, stream, chunk, edges);
}

EdgeChunks FusedMessages::chunks_of(const Scratch& scratch, bool is_reverse) const {
    return plan_edge_chunks(scratch.edge_capacity, scratch.bytes / scratch_bytes_per_edge(is_reverse), kEdgesPerTile);
}

// visit(view of the chunk)
template <class Visit>
void FusedMessages::for_each_chunk(const Scratch& scratch, bool is_reverse, const Visit& visit) const {
    const auto [chunk_count, size] = chunks_of(scratch, is_reverse);
    View chunk = view();
    unsigned char* at = scratch.first;
    const auto take = [&](int64_t bytes) { return std::exchange(at, at + bytes); };
    const int64_t function_bytes =
        size / kEdgesPerTile * kSteps * RadialProduct::kFunctionPlanes * 32 * static_cast<int64_t>(sizeof(uint4));
    chunk.functions = reinterpret_cast<uint4*>(take(function_bytes));
    if (is_reverse) chunk.function_slopes = reinterpret_cast<uint4*>(take(function_bytes));
    chunk.harmonics = reinterpret_cast<float*>(take(size * kMostHarmonics * static_cast<int64_t>(sizeof(float))));
    if (is_reverse) {
        chunk.partials = reinterpret_cast<float*>(
            take(size * partial_count() * kPartialStride * static_cast<int64_t>(sizeof(float))));
        chunk.feature_gradients =
            reinterpret_cast<float*>(take(size * chunk.sender_size * static_cast<int64_t>(sizeof(float))));
    }
    for (int64_t c = 0; c < chunk_count; ++c) {
        chunk.begin = c * size;
        chunk.end = chunk.begin + size;
        chunk.is_last = c + 1 == chunk_count;
        visit(chunk);
    }
}

bool FusedMessages::fits_at_once(const Scratch& scratch) const { return chunks_of(scratch, true).count == 1; }

void FusedMessages::compute(const EdgesView<float>& edges, RowsView<const float> senders, float* sums, float* densities,
                            const Scratch& scratch, bool is_kept, cudaStream_t stream) const {
    if (edges.atom_count == 0) return;
    if (plan_.columns.density >= 0)
        launch("summing densities", sum_densities, blocks_of_atoms(edges.atom_count), kBlockThreads, stream, view(),
               edges, densities);
    const Launch how = launch_for([&](const Lot& lot) { return int64_t{edges.atom_count} * lot.pass_count; });
    for_each_chunk(scratch, is_kept, [&](View chunk) {
        prepare_edges(chunk, edges, stream);
        choose_lots(how, chunk);
        launch("summing messages", sum_kernel_for(plan_.most_components), how.shape, stream, chunk, edges, senders,
               sums);
    });
}

void FusedMessages::reverse(const EdgesView<float>& of_senders, const EdgesView<float>& edges,
                            const int64_t* reverse_edge, RowsView<const float> senders, const float* sums_gradient,
                            const float* densities_gradient, const EdgeGradientsView<float>& gradients, bool accumulate,
                            const SendersGradient& senders_gradient, const Scratch& scratch, bool is_kept,
                            cudaStream_t stream) const {
    if (of_senders.atom_count == 0) return;
    const int tile_parts = tile_parts_for(int64_t{edges.atom_count} * slot_count_);
    const Launch how =
        launch_for([&](const Lot& lot) { return int64_t{edges.atom_count} * tile_parts * lot.group_count; });
    for_each_chunk(scratch, true, [&](View chunk) {
        chunk.tile_parts = tile_parts;
        if (!senders_gradient.rows) chunk.feature_gradients = nullptr;
        if (!is_kept) prepare_edges(chunk, edges, stream);
        choose_lots(how, chunk);
        launch("reversing messages", reverse_kernel_for(plan_.most_components), how.shape, stream, chunk, edges,
               senders, sums_gradient);
        constexpr int kFewAtoms = 1024;
        const int64_t gradient_count = (chunk.end - chunk.begin) * (harmonic_count_ + 1);
        const bool adds = senders_gradient.adds || chunk.begin > 0;
        if (senders_gradient.rows && of_senders.atom_count <= kFewAtoms) {
            constexpr int kThreads = kBlockThreads * kFewGroups;
            const auto finish_blocks = static_cast<int>((gradient_count + kThreads - 1) / kThreads);
            launch("gradients of edges and senders", finish_and_gather_kernel, finish_blocks + of_senders.atom_count,
                   kThreads, stream, chunk, edges, densities_gradient, gradients, accumulate, of_senders, reverse_edge,
                   senders_gradient.rows, adds, finish_blocks);
            return;
        }
        launch("gradients of edges", finish_kernel, (gradient_count + kBlockThreads - 1) / kBlockThreads, kBlockThreads,
               stream, chunk, edges, densities_gradient, gradients, accumulate);
        if (senders_gradient.rows)
            launch("gradients of senders", gather_kernel, int64_t{of_senders.atom_count}, kBlockThreads, stream, chunk,
                   of_senders, edges.first + edges.atom_count, reverse_edge, senders_gradient.rows, adds);
    });
}

}  // namespace mlff::equivariant::gpu
