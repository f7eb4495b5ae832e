// SPDX-License-Identifier: MIT
#include "mace/cuda/linear.h"

#include <algorithm>

#include "device/cuda_check.h"

namespace mlff::mace::cuda {
namespace {

using mlff::cuda::launch;

// A block computes kRows rows (an atom and a component each) of kColumns columns, a thread 8 by 8 of them.
constexpr int kRows = 64, kColumns = 128, kDepth = 16;
static_assert(kRows * kColumns == kBlockThreads * 64);

// Launch: (tile, target block, rows of the tile / kRows times columns of the target / kColumns).
template <class Real>
__global__ void __launch_bounds__(kBlockThreads) linear_kernel(typename DeviceLinear<Real>::View map, TilesView tiles, RowsView<const Real> in, RowsView<Real> out,
                                                               bool accumulate) {
    __shared__ __align__(16) Real staged[kDepth][kRows];
    __shared__ __align__(16) Real matrix[kDepth][kColumns];
    const Tile tile = tiles.tiles[blockIdx.x];
    const auto target = map.targets[blockIdx.y];
    const int column_chunks = (target.stride + kColumns - 1) / kColumns;
    const int first_row = static_cast<int>(blockIdx.z) / column_chunks * kRows, first_column = static_cast<int>(blockIdx.z) % column_chunks * kColumns;
    const int row_count = tile.count * target.components;
    if (first_row >= row_count) return;
    const int32_t* atoms = tiles.atoms + tile.begin;
    const Real* matrices = map.matrices + tile.element * map.matrices_per_element;
    const int thread = static_cast<int>(threadIdx.x);
    // Rows 4 i ... 4 i + 3 and the same 32 further on, columns likewise 64 further on: what lies together is loaded together.
    const int own_row = thread / 16 * 4, own_column = thread % 16 * 4;
    // What this thread stages: one row of the input, half of the depth.
    const int staged_row = thread % kRows, staged_begin = thread / kRows * (kDepth / 2);
    const int row = first_row + staged_row;
    const Real* from = row < row_count ? in.of(atoms[row / target.components]) : nullptr;
    const int component = row % target.components;

    Real sum[8][8] = {};
    for (int s = target.source_begin; s < target.source_end; ++s) {
        const auto source = map.sources[s];
        for (int begin = 0; begin < source.copies; begin += kDepth) {
            __syncthreads();
#pragma unroll
            for (int i = 0; i < kDepth / 2; ++i) {
                const int u = staged_begin + i;
                staged[u][staged_row] = from && begin + u < source.copies ? from[source.offset + component * source.stride + begin + u] : Real(0);
            }
#pragma unroll
            for (int u = 0; u < kDepth; ++u) {
                const int column = first_column + thread;
                matrix[u][thread] = column < target.stride && begin + u < source.copies ? matrices[source.matrix + int64_t{begin + u} * target.stride + column] : Real(0);
            }
            __syncthreads();
#pragma unroll
            for (int u = 0; u < kDepth; ++u) {
                Real x[8], w[8];
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    x[i] = staged[u][own_row + i];
                    x[4 + i] = staged[u][own_row + kRows / 2 + i];
                    w[i] = matrix[u][own_column + i];
                    w[4 + i] = matrix[u][own_column + kColumns / 2 + i];
                }
#pragma unroll
                for (int i = 0; i < 8; ++i)
#pragma unroll
                    for (int j = 0; j < 8; ++j) sum[i][j] += x[i] * w[j];
            }
        }
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const int to_row = first_row + own_row + i % 4 + i / 4 * (kRows / 2);
        if (to_row >= row_count) continue;
        Real* to = out.of(atoms[to_row / target.components]) + target.offset + to_row % target.components * target.stride;
#pragma unroll
        for (int j = 0; j < 8; ++j) {
            const int column = first_column + own_column + j % 4 + j / 4 * (kColumns / 2);
            if (column < target.stride) to[column] = accumulate ? to[column] + sum[i][j] : sum[i][j];
        }
    }
}

// The layout's blocks that make up each block of the irreps, with the first copy in each.
struct Piece {
    cpu::RowBlock block;
    int first_copy = 0;
};
std::vector<std::vector<Piece>> match_blocks(const Irreps& irreps, const cpu::RowLayout& layout) {
    std::vector<std::vector<Piece>> pieces;
    size_t next = 0;
    for (const IrrepBlock& block : irreps.blocks()) {
        pieces.emplace_back();
        for (int copies = 0; copies < block.multiplicity; copies += layout.blocks[next++].copies) {
            if (next >= layout.blocks.size() || layout.blocks[next].components != block.irrep.dimension())
                fail(Status::unsupported, "a linear map from or to ", irreps.text(), " does not fit the features it is given");
            pieces.back().push_back({layout.blocks[next], copies});
        }
    }
    return pieces;
}

}  // namespace

template <class Real>
typename DeviceLinear<Real>::Direction DeviceLinear<Real>::make_direction(const Linear& linear, const cpu::RowLayout& in, const cpu::RowLayout& out, bool transposed,
                                                                         cudaStream_t stream) {
    const auto in_pieces = match_blocks(linear.in, in), out_pieces = match_blocks(linear.out, out);
    const cpu::RowLayout& targets_layout = transposed ? in : out;
    std::vector<Source> sources;
    std::vector<Target> targets;
    std::vector<Real> matrices;
    Direction direction;
    // All matrices of element 0, then those of the next: first the places, then the numbers.
    struct Place {
        const Linear::Path* path;
        Piece from, to;
        int64_t matrix;
    };
    std::vector<Place> places;
    int64_t size = 0;
    for (const cpu::RowBlock& block : targets_layout.blocks) {
        Target target = {block.offset, block.stride, block.components, static_cast<int32_t>(sources.size()), 0};
        for (const Linear::Path& path : linear.paths)
            for (const Piece& from : in_pieces[static_cast<size_t>(path.in_block)])
                for (const Piece& to : out_pieces[static_cast<size_t>(path.out_block)]) {
                    if ((transposed ? from : to).block.offset != block.offset) continue;
                    const cpu::RowBlock& source = (transposed ? to : from).block;
                    sources.push_back({source.offset, source.stride, source.copies, size});
                    places.push_back({&path, from, to, size});
                    size += int64_t{source.copies} * block.stride;
                }
        target.source_end = static_cast<int32_t>(sources.size());
        direction.most_chunks = std::max(direction.most_chunks, (kAtomsPerTile * block.components + kRows - 1) / kRows * ((block.stride + kColumns - 1) / kColumns));
        targets.push_back(target);
    }
    matrices.assign(static_cast<size_t>(size * linear.element_count), Real(0));
    for (const Place& place : places) {
        const int64_t copies_in = linear.in[place.path->in_block].multiplicity, copies_out = linear.out[place.path->out_block].multiplicity;
        const int64_t target_stride = (transposed ? place.from : place.to).block.stride;
        for (int64_t z = 0; z < linear.element_count; ++z)
            for (int64_t u = 0; u < place.from.block.copies; ++u)
                for (int64_t w = 0; w < place.to.block.copies; ++w) {
                    const double weight = place.path->weight[static_cast<size_t>((z * copies_in + place.from.first_copy + u) * copies_out + place.to.first_copy + w)];
                    matrices[static_cast<size_t>(z * size + place.matrix + (transposed ? w * target_stride + u : u * target_stride + w))] = static_cast<Real>(weight);
                }
    }
    direction.matrices_per_element = linear.element_count > 1 ? size : 0;
    direction.target_count = static_cast<int>(targets.size());
    direction.sources.upload(sources.data(), static_cast<int64_t>(sources.size()), "the model", stream);
    direction.targets.upload(targets.data(), static_cast<int64_t>(targets.size()), "the model", stream);
    direction.matrices.upload(matrices.data(), static_cast<int64_t>(matrices.size()), "the model", stream);
    return direction;
}

template <class Real>
DeviceLinear<Real>::DeviceLinear(const Linear& linear, const cpu::RowLayout& in, const cpu::RowLayout& out, cudaStream_t stream)
    : forward_(make_direction(linear, in, out, false, stream)), transposed_(make_direction(linear, in, out, true, stream)) {}

template <class Real>
void DeviceLinear<Real>::run(const Direction& direction, const TilesView& tiles, RowsView<const Real> in, RowsView<Real> out, bool accumulate, cudaStream_t stream) {
    if (tiles.tile_count == 0 || direction.target_count == 0) return;
    const View view = {direction.sources.data(), direction.targets.data(), direction.matrices.data(), direction.matrices_per_element};
    const mlff::cuda::LaunchShape shape = {
        dim3(static_cast<unsigned>(tiles.tile_count), static_cast<unsigned>(direction.target_count), static_cast<unsigned>(direction.most_chunks)), kBlockThreads};
    launch("a linear map", linear_kernel<Real>, shape, stream, view, tiles, in, out, accumulate);
}

template <class Real>
void DeviceLinear<Real>::apply(const TilesView& tiles, RowsView<const Real> in, RowsView<Real> out, bool accumulate, cudaStream_t stream) const {
    run(forward_, tiles, in, out, accumulate, stream);
}

template <class Real>
void DeviceLinear<Real>::apply_transposed(const TilesView& tiles, RowsView<const Real> out_gradient, RowsView<Real> in_gradient, bool accumulate,
                                          cudaStream_t stream) const {
    run(transposed_, tiles, out_gradient, in_gradient, accumulate, stream);
}

template class DeviceLinear<float>;
template class DeviceLinear<double>;

}  // namespace mlff::mace::cuda
