// SPDX-License-Identifier: MIT
#include "mace/gpu/edge_network.h"
#include "mace/plan/names.h"

#include <algorithm>

#include "equivariant/activation.h"
#include "gpu/engine/warp.h"
#include "gpu/runtime/cuda_check.h"

namespace mlff::mace::gpu {
namespace {

using mlff::gpu::launch;
using mlff::gpu::LaunchShape;

template <class Real>
struct FirstLayerView {
    TablesView<Real> tables;
    int width = 0;

    __device__ plan::SplinePoint<Real> point(const EdgesView<Real>& edges, int64_t atom, int64_t edge) const {
        return tables.table(edges.elements[atom], edges.elements[edges.sender[edge]]).at(edges.distance[edge]);
    }
};

// Launch of both kernels: one warp per atom. The ends of an atom are its numbers as a sender, then as a receiver.
template <class Real>
__global__ void __launch_bounds__(kBlockThreads)
    first_layer_kernel(FirstLayerView<Real> view, EdgesView<Real> edges, const Real* ends, Real* out) {
    mlff::gpu::await_predecessor();
    const WarpOfAtom at;
    if (at.atom >= edges.atom_count) return;
    const Real* own = ends + at.atom * 2 * view.width + view.width;
    for (int64_t edge = edges.first[at.atom]; edge < edges.first[at.atom + 1]; ++edge) {
        const plan::SplinePoint<Real> point = view.point(edges, at.atom, edge);
        const Real* other = ends + int64_t{edges.sender[edge]} * 2 * view.width;
        for (int k = at.lane; k < view.width; k += 32)
            out[edge * view.width + k] = plan::value_at(point, k) + other[k] + own[k];
    }
}

template <class Real>
__global__ void __launch_bounds__(kBlockThreads)
    reverse_first_layer_kernel(FirstLayerView<Real> view, EdgesView<Real> edges, const int64_t* reverse,
                               const Real* gradient, double* distance_gradient, Real* ends_gradient) {
    mlff::gpu::await_predecessor();
    const WarpOfAtom at;
    if (at.atom >= edges.atom_count) return;
    const int64_t begin = edges.first[at.atom], end = edges.first[at.atom + 1];
    for (int64_t edge = begin; edge < end; ++edge) {
        const plan::SplinePoint<Real> point = view.point(edges, at.atom, edge);
        double slope = 0;
        for (int k = at.lane; k < view.width; k += 32)
            slope += static_cast<double>(plan::slope_at(point, k) * gradient[edge * view.width + k]);
        slope = sum_over_warp(slope);
        if (at.lane == 0) distance_gradient[edge] += slope;
    }
    for (int k = at.lane; k < view.width; k += 32) {
        Real as_sender = 0, as_receiver = 0;
        for (int64_t edge = begin; edge < end; ++edge) {
            as_sender += gradient[reverse[edge] * view.width + k];
            as_receiver += gradient[edge * view.width + k];
        }
        Real* to = ends_gradient + at.atom * 2 * view.width + k;
        to[0] = as_sender;
        to[view.width] = as_receiver;
    }
}

// The product of rows, one for each edge, and a matrix.
template <class Real>
struct DenseView {
    const Real* in = nullptr;      // [row][depth]
    const Real* weight = nullptr;  // [depth][width]
    const Real* bias = nullptr;    // [width], or nullptr
    Real* out = nullptr;           // [row][width]
    int depth = 0, width = 0;
    bool activates_input = false;
    const Real* before = nullptr;  // [row][width]: if given, multiplies the result by the slope of the activation there
    Activation activation;
};

constexpr int kTile = 64, kDepth = 16, kDenseThreads = 256, kOwn = 4;  // a thread computes kOwn x kOwn results

// Launch: a block has kTile rows (blockIdx.x) and kTile columns (blockIdx.y). `row_count` is on the device.
template <class Real>
__global__ void __launch_bounds__(kDenseThreads) dense_kernel(DenseView<Real> view, const int64_t* row_count) {
    mlff::gpu::await_predecessor();
    __shared__ Real in[kDepth][kTile + 1], weight[kDepth][kTile];
    const int64_t rows = *row_count, first_row = int64_t{blockIdx.x} * kTile;
    const int first_column = static_cast<int>(blockIdx.y) * kTile, thread = static_cast<int>(threadIdx.x);
    if (first_row >= rows) return;
    const int own_column = thread % (kTile / kOwn) * kOwn, own_row = thread / (kTile / kOwn) * kOwn;
    Real sum[kOwn][kOwn] = {};
    for (int d = 0; d < view.depth; d += kDepth) {
        for (int i = thread; i < kTile * kDepth; i += kDenseThreads) {
            const int r = i / kDepth, k = i % kDepth;
            Real x = first_row + r < rows ? view.in[(first_row + r) * view.depth + d + k] : Real(0);
            if (view.activates_input) x = static_cast<Real>(activate(view.activation, static_cast<double>(x)));
            in[k][r] = x;
        }
        for (int i = thread; i < kTile * kDepth; i += kDenseThreads) {
            const int k = i / kTile, c = i % kTile;
            weight[k][c] =
                first_column + c < view.width ? view.weight[int64_t{d + k} * view.width + first_column + c] : Real(0);
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < kDepth; ++k)
#pragma unroll
            for (int r = 0; r < kOwn; ++r)
#pragma unroll
                for (int c = 0; c < kOwn; ++c) sum[r][c] += in[k][own_row + r] * weight[k][own_column + c];
        __syncthreads();
    }
    for (int r = 0; r < kOwn; ++r)
        for (int c = 0; c < kOwn; ++c) {
            const int64_t row = first_row + own_row + r;
            const int column = first_column + own_column + c;
            if (row >= rows || column >= view.width) continue;
            Real result = sum[r][c];
            if (view.bias) result += view.bias[column];
            if (view.before)
                result *= static_cast<Real>(
                    activation_slope(view.activation, static_cast<double>(view.before[row * view.width + column])));
            view.out[row * view.width + column] = result;
        }
}

template <class Real>
void multiply(const DenseView<Real>& view, const EdgesView<Real>& edges, int64_t edge_capacity, cudaStream_t stream) {
    const dim3 blocks(static_cast<unsigned>((edge_capacity + kTile - 1) / kTile),
                      static_cast<unsigned>((view.width + kTile - 1) / kTile));
    launch("networks of edges", dense_kernel<Real>, LaunchShape{blocks, kDenseThreads}, stream, view,
           edges.first + edges.atom_count);
}

// Rows [begin, begin + count) of the first layer's matrix.
std::vector<double> first_layer_rows(const DenseLayer& layer, int begin, int count) {
    const auto width = static_cast<std::ptrdiff_t>(layer.out_width);
    return {layer.weight.begin() + begin * width, layer.weight.begin() + (begin + count) * width};
}

Interaction make_radial_part(const Weights& weights, const Interaction& whole) {
    const DenseLayer& first = whole.radial_network.layers.front();
    const int basis_count = weights.radial.basis_count;
    DenseLayer hidden, unused;
    hidden.in_width = basis_count;
    hidden.out_width = unused.in_width = first.out_width;
    hidden.weight = first_layer_rows(first, 0, basis_count);
    hidden.bias = first.bias;
    unused.out_width = 1;
    unused.weight.assign(static_cast<size_t>(first.out_width), 0.0);
    Interaction part;
    part.radial_network.layers = {std::move(hidden), std::move(unused)};
    return part;
}

// The map from an atom's `down` features to its ends: its terms of the first layer, as a sender and as a receiver.
Linear make_ends(const Weights& weights, const Interaction& interaction) {
    const DenseLayer& first = interaction.radial_network.layers.front();
    Linear ends;
    ends.in = interaction.down->out;
    ends.out.append(first.out_width, Irrep{});
    ends.out.append(first.out_width, Irrep{});
    for (int end = 0; end < 2; ++end)
        for (int block = 0; block < static_cast<int>(ends.in.blocks().size()); ++block) {
            const int row = weights.radial.basis_count + end * interaction.edge_width + ends.in[block].offset;
            ends.paths.push_back({block, end, first_layer_rows(first, row, ends.in[block].multiplicity)});
        }
    return ends;
}

}  // namespace

std::string why_no_edge_network(const Weights& weights, const Interaction& interaction) {
    const DenseNetwork& network = interaction.radial_network;
    if (!plan::ends_in_linear_layer(network)) return "its radial network does not end in a linear layer";
    for (const DenseLayer& layer : network.layers)
        if (!layer.norm_scale.empty()) return "its radial network takes features of atoms and is normalised";
    if (!weights.radial.cutoff_in_basis)
        return "its radial network takes features of atoms, and the cutoff is on the messages";
    return "";
}

template <class Real>
DeviceEdgeNetwork<Real>::DeviceEdgeNetwork(const plan::LayerPlan<Real>& plan, const plan::RowLayout& below,
                                           cudaStream_t stream)
    : plan_(plan),
      width_(plan::padded(plan.layer.interaction.radial_network.layers.front().out_width)),
      radial_part_(make_radial_part(plan.weights, plan.layer.interaction)),
      columns_(plan::columns_of_hidden(radial_part_)),
      functions_(std::make_unique<plan::EdgeFunctions>(plan.weights, radial_part_, columns_)),
      host_tables_(plan::depends_on_elements(plan.weights, radial_part_)
                       ? static_cast<size_t>(plan.weights.element_count() * plan.weights.element_count())
                       : 1),
      receiver_stride_(host_tables_.size() > 1 ? static_cast<size_t>(plan.weights.element_count()) : 0),
      sender_stride_(host_tables_.size() > 1 ? 1 : 0),
      tables_(host_tables_, receiver_stride_, sender_stride_),
      down_layout_(plan.layer.interaction.down->out),
      ends_layout_(make_ends(plan.weights, plan.layer.interaction).out),
      down_(*plan.layer.interaction.down, below, down_layout_, stream),
      ends_(make_ends(plan.weights, plan.layer.interaction), down_layout_, ends_layout_, stream) {
    const Interaction& interaction = plan.layer.interaction;
    const std::vector<DenseLayer>& plain = interaction.radial_network.layers;
    // For each output of the last layer, its column among the radial weights of the paths.
    std::vector<int> column_of(static_cast<size_t>(plain.back().out_width), -1);
    for (size_t p = 0; p < interaction.convolution.paths.size(); ++p) {
        const Convolution::Path& path = interaction.convolution.paths[p];
        for (int u = 0; u < interaction.convolution.in[path.in_block].multiplicity; ++u)
            column_of[static_cast<size_t>(path.weight_offset + u)] = plan.columns.path[p] + u;
    }
    for (size_t n = 1; n < plain.size(); ++n) {
        const bool is_last = n + 1 == plain.size();
        Layer layer;
        layer.in_width = plan::padded(plain[n].in_width);
        layer.out_width = is_last ? plan.columns.count : plan::padded(plain[n].out_width);
        layer.activation = plain[n - 1].activation;
        const auto in_width = static_cast<size_t>(layer.in_width), out_width = static_cast<size_t>(layer.out_width);
        std::vector<Real> weight(in_width * out_width, Real(0)), transposed(weight), bias;
        if (!plain[n].bias.empty()) bias.assign(out_width, Real(0));
        const double factor = is_last ? plain[n].activation.factor : 1;
        for (int w = 0; w < plain[n].out_width; ++w) {
            const int column = is_last ? column_of[static_cast<size_t>(w)] : w;
            if (column < 0) continue;
            const auto to = static_cast<size_t>(column);
            if (!bias.empty()) bias[to] = static_cast<Real>(factor * plain[n].bias[static_cast<size_t>(w)]);
            for (size_t u = 0; u < static_cast<size_t>(plain[n].in_width); ++u) {
                const auto value = static_cast<Real>(
                    factor * plain[n].weight[u * static_cast<size_t>(plain[n].out_width) + static_cast<size_t>(w)]);
                weight[u * out_width + to] = value;
                transposed[to * in_width + u] = value;
            }
        }
        upload(layer.weight, weight, stream);
        upload(layer.transposed, transposed, stream);
        if (!bias.empty()) upload(layer.bias, bias, stream);
        layers_.push_back(std::move(layer));
    }
}

template <class Real>
void DeviceEdgeNetwork<Real>::prepare(const std::vector<int>& elements, ThreadTeam& team, cudaStream_t stream) {
    for (int receiver : elements)
        for (int sender : elements) {
            auto& table = host_tables_[static_cast<size_t>(receiver) * receiver_stride_ +
                                       static_cast<size_t>(sender) * sender_stride_];
            if (!table)
                table = std::make_unique<plan::RadialTable<Real>>(
                    plan::make_radial_table<Real>(*functions_, {&columns_.count, 1}, plan_.lowest_distance,
                                                  plan_.weights.cutoff, sender, receiver, team));
        }
    tables_.prepare(stream);
}

template <class Real>
void DeviceEdgeNetwork<Real>::list_buffers(BufferList& list, int64_t atom_count, int64_t edge_count,
                                           bool has_gradients) {
    constexpr const char *kAtoms = "the features of the atoms", *kEdges = "the networks of the edges";
    list.add(down_rows_, atom_count * down_layout_.size, kAtoms);
    list.add(ends_rows_, atom_count * ends_layout_.size, kAtoms);
    list.add(weights_, edge_count * plan_.columns.count, kEdges);
    if (has_gradients) list.add(weights_gradient_, edge_count * plan_.columns.count, kEdges);
    for (Layer& layer : layers_) {
        list.add(layer.input, edge_count * layer.in_width, kEdges);
        if (!has_gradients) continue;
        list.add(gradient_, edge_count * layer.in_width, kEdges);
        list.add(gradient_below_, edge_count * layer.in_width, kEdges);
    }
}

template <class Real>
void DeviceEdgeNetwork<Real>::compute_ends(const EdgesView<Real>& edges, const TilesView& tiles,
                                           RowsView<const Real> features, cudaStream_t stream) {
    if (edges.atom_count == 0) return;
    down_.apply(tiles, features, {down_rows_.data(), down_layout_.size, nullptr}, false, stream);
    ends_.apply(tiles, {down_rows_.data(), down_layout_.size, nullptr}, {ends_rows_.data(), ends_layout_.size, nullptr},
                false, stream);
}

template <class Real>
EdgeWeights<Real> DeviceEdgeNetwork<Real>::compute(const EdgesView<Real>& edges, const EdgeGeometry& geometry,
                                                   int64_t edge_capacity, cudaStream_t stream) {
    const EdgeWeights<Real> result = {weights_.data(), nullptr, geometry.reverse, plan_.columns.count};
    if (edges.atom_count == 0 || edge_capacity == 0) return result;
    const FirstLayerView<Real> first = {tables_.view(), width_};
    launch("networks of edges", first_layer_kernel<Real>, blocks_of_atoms(edges.atom_count), kBlockThreads, stream,
           first, edges, ends_rows_.data(), layers_.front().input.data());
    for (size_t n = 0; n < layers_.size(); ++n) {
        const Layer& layer = layers_[n];
        Real* out = n + 1 < layers_.size() ? layers_[n + 1].input.data() : weights_.data();
        multiply<Real>({layer.input.data(), layer.weight.data(), layer.bias.data(), out, layer.in_width,
                        layer.out_width, true, nullptr, layer.activation},
                       edges, edge_capacity, stream);
    }
    return result;
}

template <class Real>
EdgeWeights<Real> DeviceEdgeNetwork<Real>::start_gradient(const EdgeGeometry& geometry, int64_t edge_capacity,
                                                          cudaStream_t stream) {
    weights_gradient_.resize_discard(edge_capacity * plan_.columns.count, "the networks of the edges");
    weights_gradient_.clear(stream);
    return {weights_.data(), weights_gradient_.data(), geometry.reverse, plan_.columns.count};
}

template <class Real>
void DeviceEdgeNetwork<Real>::reverse(const EdgesView<Real>& edges, const EdgesView<Real>& edges_with_ghosts,
                                      const EdgeGeometry& geometry, int64_t edge_capacity, const TilesView& tiles,
                                      double* distance_gradient, RowsView<Real> features_gradient,
                                      cudaStream_t stream) {
    if (edges.atom_count == 0 || edge_capacity == 0) return;
    const Real* gradient = weights_gradient_.data();
    for (size_t n = layers_.size(); n-- > 0;) {
        const Layer& layer = layers_[n];
        Real* below = n % 2 == 0 ? gradient_.data() : gradient_below_.data();
        multiply<Real>({gradient, layer.transposed.data(), nullptr, below, layer.out_width, layer.in_width, false,
                        layer.input.data(), layer.activation},
                       edges_with_ghosts, edge_capacity, stream);
        gradient = below;
    }
    const FirstLayerView<Real> first = {tables_.view(), width_};
    launch("reversing networks of edges", reverse_first_layer_kernel<Real>, blocks_of_atoms(edges.atom_count),
           kBlockThreads, stream, first, edges, geometry.reverse, gradient, distance_gradient, ends_rows_.data());
    if (!features_gradient.first) return;
    ends_.apply_transposed(tiles, {ends_rows_.data(), ends_layout_.size, nullptr},
                           {down_rows_.data(), down_layout_.size, nullptr}, false, stream);
    down_.apply_transposed(tiles, {down_rows_.data(), down_layout_.size, nullptr}, features_gradient, true, stream);
}

template class DeviceEdgeNetwork<float>;
template class DeviceEdgeNetwork<double>;

}  // namespace mlff::mace::gpu
