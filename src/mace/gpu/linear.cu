// SPDX-License-Identifier: MIT
#include "mace/gpu/linear.h"

#include <algorithm>
#include <limits>

#include "gpu/engine/four.h"
#include "gpu/engine/instructions.h"
#include "gpu/engine/tensor_product.h"
#include "gpu/runtime/cuda_check.h"

namespace mlff::mace::gpu {
namespace {

using mlff::gpu::launch;

constexpr int kMostTargets = 16;  // per launch

// One launch. Each target has as many blocks as its rows (one for each atom and component) and columns need.
template <class Real>
struct LinearJob {
    LinearTarget targets[kMostTargets];
    int32_t first_block[kMostTargets];  // beyond the last target: larger than any block index
    LinearView<Real> map;
    TilesView tiles;
    RowsView<const Real> in;
    RowsView<Real> out;
    bool accumulate;
};

__host__ __device__ constexpr int divide_up(int a, int b) { return (a + b - 1) / b; }

// Size of a packed matrix for one step.
template <class Real>
__host__ __device__ constexpr int packed_size(int columns) {
    return divide_up(columns, kProductColumns) * kProductColumns * kStep<Real>;
}
__device__ __forceinline__ int clamped_step(int step, int end) { return max(min(step, end - 1), 0); }

// Rows and columns of one block of threads.
template <class Real>
struct Area {
    LinearTarget target;
    const int32_t* atoms;
    const Real* matrix;
    int first_row, row_count;  // rows are those of `atoms`
    int first_column;

    __device__ Area(const LinearJob<Real>& job, int rows_per_block, int columns_per_block) {
        int block = static_cast<int>(blockIdx.x), t = 0;
#pragma unroll
        for (int i = 1; i < kMostTargets; ++i) t += block >= job.first_block[i];
        target = job.targets[t];
        block -= job.first_block[t];
        const int column_blocks = divide_up(target.stride, columns_per_block);
        first_column = block % column_blocks * columns_per_block;
        const int row_block = block / column_blocks;
        atoms = job.tiles.atoms;
        matrix = job.map.matrices + target.matrix;
        if (job.map.matrices_per_element == 0) {
            first_row = row_block * rows_per_block;
            row_count = job.tiles.atom_count * target.components;
        } else {
            const int blocks_per_tile = divide_up(kAtomsPerTile * target.components, rows_per_block);
            const Tile tile = job.tiles.tiles[row_block / blocks_per_tile];
            first_row = row_block % blocks_per_tile * rows_per_block;
            row_count = tile.count * target.components;
            atoms += tile.begin;
            matrix += tile.element * job.map.matrices_per_element;
        }
    }
    // Rows beyond the last repeat the last one, so that loads need no branches. They are not written.
    __device__ int clamped(int row) const { return min(first_row + row, row_count - 1); }
    __device__ bool has_row(int row) const { return first_row + row < row_count; }
    __device__ Real* out_row(const LinearJob<Real>& job, int row) const {
        const int clamped_row = clamped(row);
        return job.out.of(atoms[clamped_row / target.components]) + target.offset +
               clamped_row % target.components * target.stride;
    }
};

// A row of the input.
template <class Real>
struct SourceRow {
    const Real* of_atom;
    int component;

    __device__ SourceRow(const LinearJob<Real>& job, const Area<Real>& area, int row) {
        const int clamped_row = area.clamped(row);
        of_atom = job.in.of(area.atoms[clamped_row / area.target.components]);
        component = clamped_row % area.target.components;
    }
    __device__ __forceinline__ const Real* at(const LinearStep& step, int number) const {
        return of_atom + step.offset + component * step.stride + number;
    }
};

// A lane's four sums within 16 columns, of row g (`half` 0) or g + 8 (`half` 1).
template <class Real>
__device__ __forceinline__ Four<Real> four_of(const ProductSum<Real>& sum, int pair, int half) {
    return {{sum[2 * pair][2 * half], sum[2 * pair][2 * half + 1], sum[2 * pair + 1][2 * half],
             sum[2 * pair + 1][2 * half + 1]}};
}

__device__ __forceinline__ LinearStep load_step(const LinearStep* from) {
    const uint4 bytes = load_bytes(from);
    return {static_cast<int32_t>(bytes.x), static_cast<int32_t>(bytes.y), static_cast<int32_t>(bytes.z)};
}

// For many rows. All warps of a block compute the same RowTiles * kProductRows rows, each for its kProductColumns
// columns.
template <int RowTiles, int Warps>
struct TiledShape {
    static constexpr int kTiles = RowTiles, kThreads = 32 * Warps;
    static constexpr int kRows = RowTiles * kProductRows, kColumns = Warps * kProductColumns;
    static constexpr int kStages = 4;
    static constexpr int kMinBlocks = 384 / kThreads;
};
template <class Real, class Shape>
__global__ void __launch_bounds__(Shape::kThreads, Shape::kMinBlocks)
    tiled_kernel(const __grid_constant__ LinearJob<Real> job) {
    mlff::gpu::await_predecessor();
    using Product = TensorProduct<Real>;
    constexpr int kPacksPerRow = kStepBytes / 16, kRowsAtOnce = Shape::kThreads / kPacksPerRow,
                  kCopies = Shape::kRows / kRowsAtOnce;
    static_assert(Shape::kRows % kRowsAtOnce == 0);
    __shared__ Pack<Real> staged_rows[Shape::kStages][Shape::kRows][kPacksPerRow];
    __shared__ Pack<Real> staged_matrix[Shape::kStages][Shape::kColumns / 8][32];
    const Area<Real> area(job, Shape::kRows, Shape::kColumns);
    if (area.first_row >= area.row_count) return;
    const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
    const int g = lane / 4, q = lane % 4;
    const int own_column = area.first_column + warp * kProductColumns;
    const bool has_columns = own_column < area.target.stride;

    // What this thread copies: its part of a few rows, and its part of the warp's columns of the matrix.
    const int copied_row = thread / kPacksPerRow, copied_pack = thread % kPacksPerRow,
              first_number = copied_pack * Pack<Real>::kCount;
    const Real* from[kCopies];
    int component[kCopies];
#pragma unroll
    for (int i = 0; i < kCopies; ++i) {
        const SourceRow<Real> row(job, area, copied_row + i * kRowsAtOnce);
        from[i] = row.of_atom + first_number;
        component[i] = row.component;
    }
    const Real* matrix = area.matrix + own_column * kStep<Real> + lane * Pack<Real>::kCount;
    const int matrix_step = packed_size<Real>(area.target.stride), step_count = area.target.step_count;
    const LinearStep* steps = job.map.steps + area.target.first_step;
    const auto stage = [&](int s, const LinearStep& step) {
        if (s < step_count) {
            const int slot = s % Shape::kStages;
            const int bytes =
                min(max(step.copies - first_number, 0), Pack<Real>::kCount) * static_cast<int>(sizeof(Real));
#pragma unroll
            for (int i = 0; i < kCopies; ++i)
                start_copy(&staged_rows[slot][copied_row + i * kRowsAtOnce][copied_pack],
                           from[i] + (step.offset + component[i] * step.stride), bytes);
            if (has_columns)
#pragma unroll
                for (int i = 0; i < kColumnTiles; ++i)
                    start_copy(&staged_matrix[slot][warp * kColumnTiles + i][lane], matrix + i * (8 * kStep<Real>), 16);
            matrix += matrix_step;
        }
        end_copies();
    };

    LinearStep first_steps[Shape::kStages - 1];
#pragma unroll
    for (int s = 0; s < Shape::kStages - 1; ++s) first_steps[s] = load_step(steps + clamped_step(s, step_count));
    LinearStep next = load_step(steps + clamped_step(Shape::kStages - 1, step_count));
#pragma unroll
    for (int s = 0; s < Shape::kStages - 1; ++s) stage(s, first_steps[s]);
    ProductSum<Real> sum[Shape::kTiles] = {};
    for (int s = 0; s < step_count; ++s) {
        wait_for_copies<Shape::kStages - 2>();
        __syncthreads();  // all copies of step s have arrived, and all warps have finished step s - 1
        stage(s + Shape::kStages - 1, next);
        next = load_step(steps + clamped_step(s + Shape::kStages, step_count));
        if (!has_columns) continue;
        const int slot = s % Shape::kStages;
        typename Product::Operand columns[kColumnTiles];
#pragma unroll
        for (int i = 0; i < kColumnTiles; ++i)
            columns[i] = Product::split(staged_matrix[slot][warp * kColumnTiles + i][lane]);
#pragma unroll
        for (int t = 0; t < Shape::kTiles; ++t) {
            const auto top = Product::split(staged_rows[slot][t * kProductRows + g][q]),
                       bottom = Product::split(staged_rows[slot][t * kProductRows + 8 + g][q]);
            Product::add(top, bottom, columns, sum[t]);
        }
    }

    if (!has_columns) return;
    Real* to[Shape::kTiles][2];
#pragma unroll
    for (int t = 0; t < Shape::kTiles; ++t)
#pragma unroll
        for (int half = 0; half < 2; ++half)
            to[t][half] = area.out_row(job, t * kProductRows + 8 * half + g) + own_column + 4 * q;
#pragma unroll
    for (int pair = 0; pair < 2; ++pair) {
        if (own_column + 16 * pair >= area.target.stride) break;
        if (job.accumulate)
#pragma unroll
            for (int t = 0; t < Shape::kTiles; ++t)
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    const Four<Real> before = load_four(to[t][half] + 16 * pair);
#pragma unroll
                    for (int i = 0; i < 4; ++i) sum[t][2 * pair + i / 2][2 * half + i % 2] += before.of[i];
                }
#pragma unroll
        for (int t = 0; t < Shape::kTiles; ++t)
#pragma unroll
            for (int half = 0; half < 2; ++half)
                if (area.has_row(t * kProductRows + 8 * half + g))
                    store_four(to[t][half] + 16 * pair, four_of<Real>(sum[t], pair, half));
    }
}

// For few rows. A block computes kProductRows rows of kProductColumns columns; each warp takes a part of the depth.
struct NarrowShape {
    static constexpr int kWarps = 8, kThreads = 32 * kWarps;
    static constexpr int kRows = kProductRows, kColumns = kProductColumns;
    static constexpr int kAhead = 4;  // steps whose numbers are loaded together
};
template <class Real>
__global__ void __launch_bounds__(NarrowShape::kThreads) narrow_kernel(const __grid_constant__ LinearJob<Real> job) {
    using Product = TensorProduct<Real>;
    constexpr int kWarps = NarrowShape::kWarps, kAhead = NarrowShape::kAhead, kPitch = kProductColumns + 4;
    __shared__ __align__(16) Real partial[kWarps][kProductRows][kPitch];
    const Area<Real> area(job, kProductRows, kProductColumns);
    if (area.first_row >= area.row_count) return mlff::gpu::await_predecessor();
    const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
    const int g = lane / 4, q = lane % 4;
    const int begin = area.target.step_count * warp / kWarps, end = area.target.step_count * (warp + 1) / kWarps;
    const LinearStep* steps = job.map.steps + area.target.first_step;
    const int64_t matrix_step = packed_size<Real>(area.target.stride);
    const int first_number = q * Pack<Real>::kCount;
    const Real* matrix = area.matrix + area.first_column * kStep<Real> + lane * Pack<Real>::kCount;
    LinearStep step[kAhead];
    Pack<Real> packed_columns[kAhead][kColumnTiles];
    const auto load_matrix = [&](int first) {
#pragma unroll
        for (int s = 0; s < kAhead; ++s) step[s] = load_step(steps + clamped_step(first + s, end));
#pragma unroll
        for (int s = 0; s < kAhead; ++s)
#pragma unroll
            for (int i = 0; i < kColumnTiles; ++i)
                packed_columns[s][i] =
                    load_pack(matrix + clamped_step(first + s, end) * matrix_step + i * (8 * kStep<Real>));
    };
    if (begin < end) load_matrix(begin);  // depends on the model alone
    mlff::gpu::await_predecessor();
    const SourceRow<Real> top(job, area, g), bottom(job, area, 8 + g);
    // What this thread writes at the end.
    constexpr int kPerThread = kProductRows * kProductColumns / NarrowShape::kThreads;
    const int own_row = thread * kPerThread / kProductColumns, own_column = thread * kPerThread % kProductColumns;
    const bool has_place = area.has_row(own_row) && area.first_column + own_column < area.target.stride;
    Real* to = area.out_row(job, own_row) + area.first_column + own_column;
    Real total[kPerThread] = {};
    if (job.accumulate && has_place)
#pragma unroll
        for (int i = 0; i < kPerThread; ++i) total[i] = to[i];

    ProductSum<Real> sum = {};
    for (int first = begin; first < end; first += kAhead) {
        Pack<Real> packed_top[kAhead], packed_bottom[kAhead];
#pragma unroll
        for (int s = 0; s < kAhead; ++s) {
            packed_top[s] = load_pack(top.at(step[s], first_number));
            packed_bottom[s] = load_pack(bottom.at(step[s], first_number));
        }
        __syncwarp();  // keeps the compiler from moving loads further down
#pragma unroll
        for (int s = 0; s < kAhead; ++s)
            if (first + s < end) {
#pragma unroll
                for (int i = 0; i < Pack<Real>::kCount; ++i)
                    if (first_number + i >= step[s].copies) packed_top[s].of[i] = packed_bottom[s].of[i] = 0;
                typename Product::Operand columns[kColumnTiles];
#pragma unroll
                for (int i = 0; i < kColumnTiles; ++i) columns[i] = Product::split(packed_columns[s][i]);
                Product::add(Product::split(packed_top[s]), Product::split(packed_bottom[s]), columns, sum);
            }
        if (first + kAhead < end) load_matrix(first + kAhead);
    }

#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
        for (int pair = 0; pair < 2; ++pair)
            store_four(&partial[warp][8 * half + g][16 * pair + 4 * q], four_of<Real>(sum, pair, half));
    __syncthreads();
    if (!has_place) return;
#pragma unroll
    for (int i = 0; i < kPerThread; ++i) {
#pragma unroll
        for (int w = 0; w < kWarps; ++w) total[i] += partial[w][own_row][own_column + i];
        to[i] = total[i];
    }
}

// Thread blocks for a target. If all elements have the same matrix, a block may have rows of any atoms, otherwise of
// one tile only.
int blocks_for(const LinearTarget& target, const TilesView& tiles, bool is_by_element, int rows_per_block,
               int columns_per_block) {
    const int row_blocks = is_by_element
                               ? tiles.tile_count * divide_up(kAtomsPerTile * target.components, rows_per_block)
                               : divide_up(tiles.atom_count * target.components, rows_per_block);
    return row_blocks * divide_up(target.stride, columns_per_block);
}

template <class Real, class Shape>
void run_shape(void (*kernel)(LinearJob<Real>), const std::vector<LinearTarget>& targets, LinearJob<Real> job,
               cudaStream_t stream) {
    for (size_t begin = 0; begin < targets.size(); begin += kMostTargets) {
        int blocks = 0;
        for (size_t i = 0; i < kMostTargets; ++i) {
            const bool is_target = begin + i < targets.size();
            job.first_block[i] = is_target ? blocks : std::numeric_limits<int32_t>::max();
            if (!is_target) continue;
            job.targets[i] = targets[begin + i];
            blocks += blocks_for(targets[begin + i], job.tiles, job.map.matrices_per_element > 0, Shape::kRows,
                                 Shape::kColumns);
        }
        if (blocks > 0) launch("a linear map", kernel, blocks, Shape::kThreads, stream, job);
    }
}

}  // namespace

template <class Real>
typename DeviceLinear<Real>::Direction DeviceLinear<Real>::make_direction(const Linear& linear,
                                                                          const plan::RowLayout& in,
                                                                          const plan::RowLayout& out, bool transposed,
                                                                          cudaStream_t stream) {
    const auto in_pieces = plan::match_blocks(linear.in, in), out_pieces = plan::match_blocks(linear.out, out);
    const plan::RowLayout& targets_layout = transposed ? in : out;
    std::vector<LinearStep> steps;
    Direction direction;
    // The result has all matrices of element 0, then those of the next element. Find their places first, then fill in.
    struct Place {
        const Linear::Path* path;
        plan::RowPiece from, to;
        int64_t matrix, matrix_step;
    };
    std::vector<Place> places;
    int64_t size = 0;
    for (const plan::RowBlock& block : targets_layout.blocks) {
        LinearTarget target = {block.offset, block.stride, block.components, static_cast<int32_t>(steps.size()), 0,
                               size};
        const int64_t matrix_step = packed_size<Real>(block.stride);
        for (const Linear::Path& path : linear.paths)
            for (const plan::RowPiece& from : in_pieces[static_cast<size_t>(path.in_block)])
                for (const plan::RowPiece& to : out_pieces[static_cast<size_t>(path.out_block)]) {
                    if ((transposed ? from : to).block.offset != block.offset) continue;
                    const plan::RowBlock& source = (transposed ? to : from).block;
                    places.push_back({&path, from, to, size, matrix_step});
                    for (int begin = 0; begin < source.copies; begin += kStep<Real>) {
                        steps.push_back(
                            {source.offset + begin, source.stride, std::min(source.copies - begin, kStep<Real>)});
                        size += matrix_step;
                    }
                }
        target.step_count = static_cast<int32_t>(steps.size()) - target.first_step;
        direction.targets.push_back(target);
    }
    std::vector<Real> matrices(static_cast<size_t>(size * linear.element_count), Real(0));
    for (const Place& place : places) {
        const int64_t copies_in = linear.in[place.path->in_block].multiplicity,
                      copies_out = linear.out[place.path->out_block].multiplicity;
        for (int64_t z = 0; z < linear.element_count; ++z)
            for (int u = 0; u < place.from.block.copies; ++u)
                for (int w = 0; w < place.to.block.copies; ++w) {
                    const double weight = place.path->weight[static_cast<size_t>(
                        (z * copies_in + place.from.first_copy + u) * copies_out + place.to.first_copy + w)];
                    const int depth = transposed ? w : u, column = transposed ? u : w;
                    const int64_t index = place.matrix + depth / kStep<Real> * place.matrix_step +
                                          packed_index<Real>(depth % kStep<Real>, column);
                    matrices[static_cast<size_t>(z * size + index)] = static_cast<Real>(weight);
                }
    }
    steps.push_back({});  // kernels load a step even if the target has none
    direction.matrices_per_element = linear.element_count > 1 ? size : 0;
    // Blocks with many steps first, so that short ones fill the end.
    std::stable_sort(direction.targets.begin(), direction.targets.end(),
                     [](const LinearTarget& a, const LinearTarget& b) { return a.step_count > b.step_count; });
    direction.steps.upload(steps.data(), static_cast<int64_t>(steps.size()), "the model", stream);
    direction.matrices.upload(matrices.data(), static_cast<int64_t>(matrices.size()), "the model", stream);
    return direction;
}

template <class Real>
DeviceLinear<Real>::DeviceLinear(const Linear& linear, const plan::RowLayout& in, const plan::RowLayout& out,
                                 cudaStream_t stream)
    : forward_(make_direction(linear, in, out, false, stream)),
      transposed_(make_direction(linear, in, out, true, stream)) {}

template <class Real>
void DeviceLinear<Real>::run(const Direction& direction, const TilesView& tiles, RowsView<const Real> in,
                             RowsView<Real> out, bool accumulate, cudaStream_t stream) {
    if (tiles.tile_count == 0) return;
    constexpr int kTiles = sizeof(Real) == sizeof(float) ? 4 : 2;
    using Wide = TiledShape<kTiles, 4>;
    using Medium = TiledShape<kTiles / 2, 2>;
    LinearJob<Real> job{};
    job.map = {direction.steps.data(), direction.matrices.data(), direction.matrices_per_element};
    job.tiles = tiles;
    job.in = in;
    job.out = out;
    job.accumulate = accumulate;
    // Choose the largest shape that still gives every multiprocessor enough to do. The choice depends on sizes alone,
    // so that every run gives the same bits.
    constexpr int kEnoughWide = 256, kEnoughMedium = 192;
    const auto blocks = [&](int rows_per_block, int columns_per_block) {
        int count = 0;
        for (const LinearTarget& target : direction.targets)
            count += blocks_for(target, tiles, false, rows_per_block, columns_per_block);
        return count;
    };
    if (blocks(Wide::kRows, Wide::kColumns) >= kEnoughWide)
        run_shape<Real, Wide>(tiled_kernel<Real, Wide>, direction.targets, job, stream);
    else if (blocks(Medium::kRows, Medium::kColumns) >= kEnoughMedium)
        run_shape<Real, Medium>(tiled_kernel<Real, Medium>, direction.targets, job, stream);
    else
        run_shape<Real, NarrowShape>(narrow_kernel<Real>, direction.targets, job, stream);
}

template <class Real>
void DeviceLinear<Real>::apply(const TilesView& tiles, RowsView<const Real> in, RowsView<Real> out, bool accumulate,
                               cudaStream_t stream) const {
    run(forward_, tiles, in, out, accumulate, stream);
}

template <class Real>
void DeviceLinear<Real>::apply_transposed(const TilesView& tiles, RowsView<const Real> out_gradient,
                                          RowsView<Real> in_gradient, bool accumulate, cudaStream_t stream) const {
    run(transposed_, tiles, out_gradient, in_gradient, accumulate, stream);
}

template class DeviceLinear<float>;
template class DeviceLinear<double>;

}  // namespace mlff::mace::gpu
