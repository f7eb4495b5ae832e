// SPDX-License-Identifier: MIT
#include "equivariant/gpu/linear.h"

#include <algorithm>
#include <limits>

#include "gpu/engine/four.h"
#include "gpu/engine/instructions.h"
#include "gpu/engine/tensor_product.h"
#include "gpu/runtime/cuda_check.h"

namespace mlff::equivariant::gpu {
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

// Rows and columns of one block of threads. `block` counts within those of the target.
template <class Real>
struct Area {
    LinearTarget target;
    const int32_t* atoms;
    int element = 0;           // of the atoms, if the map is by element
    int first_row, row_count;  // rows are those of `atoms`
    int first_column;

    __device__ Area(const LinearTarget& of, const TilesView& tiles, bool is_by_element, int block, int rows_per_block,
                    int columns_per_block)
        : target(of), atoms(tiles.atoms) {
        const int column_blocks = divide_up(target.stride, columns_per_block);
        first_column = block % column_blocks * columns_per_block;
        const int row_block = block / column_blocks;
        if (!is_by_element) {
            first_row = row_block * rows_per_block;
            row_count = tiles.atom_count * target.components;
        } else {
            const int blocks_per_tile = divide_up(kAtomsPerTile * target.components, rows_per_block);
            const Tile tile = tiles.tiles[row_block / blocks_per_tile];
            first_row = row_block % blocks_per_tile * rows_per_block;
            row_count = tile.count * target.components;
            atoms += tile.begin;
            element = tile.element;
        }
    }
    // Rows beyond the last repeat the last one, so that loads need no branches. They are not written.
    __device__ int clamped(int row) const { return min(first_row + row, row_count - 1); }
    __device__ bool has_row(int row) const { return first_row + row < row_count; }
    __device__ Real* out_row(const RowsView<Real>& out, int row) const {
        const int clamped_row = clamped(row);
        return out.of(atoms[clamped_row / target.components]) + target.offset +
               clamped_row % target.components * target.stride;
    }
};

// A row of the input.
template <class Real>
struct SourceRow {
    const Real* of_atom = nullptr;
    int component = 0;

    __device__ SourceRow(const RowsView<const Real>& in, const Area<Real>& area, int row, bool is_there = true) {
        if (!is_there) return;
        const int clamped_row = area.clamped(row);
        of_atom = in.of(area.atoms[clamped_row / area.target.components]);
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
    int t = 0;
#pragma unroll
    for (int i = 1; i < kMostTargets; ++i) t += static_cast<int>(blockIdx.x) >= job.first_block[i];
    const Area<Real> area(job.targets[t], job.tiles, job.map.matrices_per_element > 0,
                          static_cast<int>(blockIdx.x) - job.first_block[t], Shape::kRows, Shape::kColumns);
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
        const SourceRow<Real> row(job.in, area, copied_row + i * kRowsAtOnce);
        from[i] = row.of_atom + first_number;
        component[i] = row.component;
    }
    const Real* matrix = job.map.matrices + area.target.matrix + area.element * job.map.matrices_per_element +
                         own_column * kStep<Real> + lane * Pack<Real>::kCount;
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
            to[t][half] = area.out_row(job.out, t * kProductRows + 8 * half + g) + own_column + 4 * q;
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

// For few rows: several sums of maps in one launch. A block computes kProductRows rows of kProductColumns columns; each
// warp takes a part of the depth.
constexpr int kMostSums = 4;  // per launch
template <class Real>
struct NarrowJob {
    struct Target {
        LinearTarget of[2];  // the same block of the result in both maps of the sum
        int32_t sum = 0;
    };
    struct Sum {
        LinearView<Real> maps[2];
        RowsView<const Real> in[2];
        RowsView<Real> out;
        bool has_two = false, accumulate = false, is_by_element = false;
    };
    Target targets[kMostTargets];
    int32_t first_block[kMostTargets];  // beyond the last target: larger than any block index
    Sum sums[kMostSums];
    TilesView tiles;
};
struct NarrowShape {
    static constexpr int kWarps = 8, kThreads = 32 * kWarps;
    static constexpr int kRows = kProductRows, kColumns = kProductColumns;
    static constexpr int kAhead = 4;  // steps whose numbers are loaded together
};
template <class Real>
__global__ void __launch_bounds__(NarrowShape::kThreads) narrow_kernel(const __grid_constant__ NarrowJob<Real> job) {
    using Product = TensorProduct<Real>;
    constexpr int kWarps = NarrowShape::kWarps, kAhead = NarrowShape::kAhead, kPitch = kProductColumns + 4;
    __align__(16) __shared__ Real partial[kWarps][kProductRows][kPitch];
    int t = 0;
#pragma unroll
    for (int i = 1; i < kMostTargets; ++i) t += static_cast<int>(blockIdx.x) >= job.first_block[i];
    const auto& target = job.targets[t];
    const auto& sum_of = job.sums[target.sum];
    const Area<Real> area(target.of[0], job.tiles, sum_of.is_by_element,
                          static_cast<int>(blockIdx.x) - job.first_block[t], kProductRows, kProductColumns);
    if (area.first_row >= area.row_count) return mlff::gpu::await_predecessor();
    const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
    const int g = lane / 4, q = lane % 4;
    // The steps of the first map, then those of the second.
    const int first_count = target.of[0].step_count,
              step_count = first_count + (sum_of.has_two ? target.of[1].step_count : 0);
    const int begin = step_count * warp / kWarps, end = step_count * (warp + 1) / kWarps;
    const int64_t matrix_step = packed_size<Real>(area.target.stride);
    const int first_number = q * Pack<Real>::kCount;
    const auto matrix_of = [&](int map) {
        return sum_of.maps[map].matrices + target.of[map].matrix +
               area.element * sum_of.maps[map].matrices_per_element + area.first_column * kStep<Real> +
               lane * Pack<Real>::kCount;
    };
    const Real *first_matrix = matrix_of(0), *second_matrix = matrix_of(1) - first_count * matrix_step;
    const LinearStep *first_steps = sum_of.maps[0].steps + target.of[0].first_step,
                     *second_steps = sum_of.maps[1].steps + target.of[1].first_step - first_count;
    LinearStep step[kAhead];
    bool is_second[kAhead];
    Pack<Real> packed_columns[kAhead][kColumnTiles];
    const auto load_matrix = [&](int first) {
#pragma unroll
        for (int s = 0; s < kAhead; ++s) {
            const int at = clamped_step(first + s, end);
            is_second[s] = at >= first_count;
            step[s] = load_step((is_second[s] ? second_steps : first_steps) + at);
        }
#pragma unroll
        for (int s = 0; s < kAhead; ++s)
#pragma unroll
            for (int i = 0; i < kColumnTiles; ++i)
                packed_columns[s][i] = load_pack((is_second[s] ? second_matrix : first_matrix) +
                                                 clamped_step(first + s, end) * matrix_step + i * (8 * kStep<Real>));
    };
    if (begin < end) load_matrix(begin);  // depends on the model alone
    mlff::gpu::await_predecessor();
    const SourceRow<Real> first_top(sum_of.in[0], area, g), first_bottom(sum_of.in[0], area, 8 + g),
        second_top(sum_of.in[1], area, g, sum_of.has_two), second_bottom(sum_of.in[1], area, 8 + g, sum_of.has_two);
    // What this thread writes at the end.
    constexpr int kPerThread = kProductRows * kProductColumns / NarrowShape::kThreads;
    const int own_row = thread * kPerThread / kProductColumns, own_column = thread * kPerThread % kProductColumns;
    const bool has_place = area.has_row(own_row) && area.first_column + own_column < area.target.stride;
    Real* to = area.out_row(sum_of.out, own_row) + area.first_column + own_column;
    Real total[kPerThread] = {};
    if (sum_of.accumulate && has_place)
#pragma unroll
        for (int i = 0; i < kPerThread; ++i) total[i] = to[i];

    ProductSum<Real> sum = {};
    for (int first = begin; first < end; first += kAhead) {
        Pack<Real> packed_top[kAhead], packed_bottom[kAhead];
#pragma unroll
        for (int s = 0; s < kAhead; ++s) {
            packed_top[s] = load_pack((is_second[s] ? second_top : first_top).at(step[s], first_number));
            packed_bottom[s] = load_pack((is_second[s] ? second_bottom : first_bottom).at(step[s], first_number));
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

template <class Real>
inline constexpr int kWideTiles = sizeof(Real) == sizeof(float) ? 4 : 2;
template <class Real>
using Wide = TiledShape<kWideTiles<Real>, 4>;
template <class Real>
using Medium = TiledShape<kWideTiles<Real> / 2, 2>;

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
typename DeviceLinear<Real>::Direction DeviceLinear<Real>::make_direction(const Linear& linear, const RowLayout& in,
                                                                          const RowLayout& out, bool transposed,
                                                                          cudaStream_t stream) {
    const auto in_pieces = match_blocks(linear.in, in), out_pieces = match_blocks(linear.out, out);
    const RowLayout& targets_layout = transposed ? in : out;
    std::vector<LinearStep> steps;
    Direction direction;
    // The result has all matrices of element 0, then those of the next element. Find their places first, then fill in.
    struct Place {
        const Linear::Path* path;
        RowPiece from, to;
        int64_t matrix, matrix_step;
    };
    std::vector<Place> places;
    int64_t size = 0;
    for (const RowBlock& block : targets_layout.blocks) {
        LinearTarget target = {block.offset, block.stride, block.components, static_cast<int32_t>(steps.size()), 0,
                               size};
        const int64_t matrix_step = packed_size<Real>(block.stride);
        for (const Linear::Path& path : linear.paths)
            for (const RowPiece& from : in_pieces[static_cast<size_t>(path.in_block)])
                for (const RowPiece& to : out_pieces[static_cast<size_t>(path.out_block)]) {
                    if ((transposed ? from : to).block.offset != block.offset) continue;
                    const RowBlock& source = (transposed ? to : from).block;
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
DeviceLinear<Real>::DeviceLinear(const Linear& linear, const RowLayout& in, const RowLayout& out, cudaStream_t stream)
    : forward_(make_direction(linear, in, out, false, stream)),
      transposed_(make_direction(linear, in, out, true, stream)) {}

template <class Real>
typename DeviceLinear<Real>::Shape DeviceLinear<Real>::choose_shape(const Direction& direction,
                                                                    const TilesView& tiles) {
    // The largest shape that still gives every multiprocessor enough to do. The choice depends on sizes alone, so that
    // every run gives the same bits.
    constexpr int kEnoughWide = 256, kEnoughMedium = 192;
    const auto blocks = [&](int rows_per_block, int columns_per_block) {
        int count = 0;
        for (const LinearTarget& target : direction.targets)
            count += blocks_for(target, tiles, false, rows_per_block, columns_per_block);
        return count;
    };
    if (blocks(Wide<Real>::kRows, Wide<Real>::kColumns) >= kEnoughWide) return Shape::wide;
    if (blocks(Medium<Real>::kRows, Medium<Real>::kColumns) >= kEnoughMedium) return Shape::medium;
    return Shape::narrow;
}

template <class Real>
void DeviceLinear<Real>::run_tiled(const Call& call, RowsView<Real> out, bool accumulate, const TilesView& tiles,
                                   cudaStream_t stream) {
    const Direction& direction = call.direction();
    LinearJob<Real> job{};
    job.map = direction.view();
    job.tiles = tiles;
    job.in = call.in;
    job.out = out;
    job.accumulate = accumulate;
    if (choose_shape(direction, tiles) == Shape::wide)
        run_shape<Real, Wide<Real>>(tiled_kernel<Real, Wide<Real>>, direction.targets, job, stream);
    else
        run_shape<Real, Medium<Real>>(tiled_kernel<Real, Medium<Real>>, direction.targets, job, stream);
}

template <class Real>
void DeviceLinear<Real>::run(std::span<const Sum> sums, const TilesView& tiles, cudaStream_t stream) {
    if (tiles.tile_count == 0) return;
    NarrowJob<Real> job{};
    job.tiles = tiles;
    int sum_count = 0, target_count = 0, block_count = 0;
    const auto launch_job = [&] {
        for (int t = target_count; t < kMostTargets; ++t) job.first_block[t] = std::numeric_limits<int32_t>::max();
        if (block_count > 0)
            launch("a linear map", narrow_kernel<Real>, block_count, NarrowShape::kThreads, stream, job);
        sum_count = target_count = block_count = 0;
    };
    const auto is_narrow = [&](const Call& call) { return choose_shape(call.direction(), tiles) == Shape::narrow; };
    // Adds a sum of one or two maps.
    const auto add = [&](const Call& first, const Call* second, RowsView<Real> out, bool accumulate) {
        const std::vector<LinearTarget>& targets = first.direction().targets;
        if (sum_count == kMostSums) launch_job();
        auto& sum = job.sums[sum_count];
        sum = {};
        sum.maps[0] = first.direction().view();
        sum.in[0] = first.in;
        if (second) {
            sum.maps[1] = second->direction().view();
            sum.in[1] = second->in;
        }
        sum.out = out;
        sum.has_two = second != nullptr;
        sum.accumulate = accumulate;
        sum.is_by_element = sum.maps[0].matrices_per_element + sum.maps[1].matrices_per_element > 0;
        for (const LinearTarget& target : targets) {
            if (target_count == kMostTargets) {
                const auto kept = sum;
                launch_job();
                job.sums[0] = kept;
            }
            auto& to = job.targets[target_count];
            to = {};
            to.of[0] = target;
            if (second) {
                const std::vector<LinearTarget>& others = second->direction().targets;
                const auto other = std::find_if(others.begin(), others.end(),
                                                [&](const LinearTarget& each) { return each.offset == target.offset; });
                if (other == others.end()) fail(Status::internal, "a sum of maps with different targets");
                to.of[1] = *other;
            }
            to.sum = sum_count;
            job.first_block[target_count++] = block_count;
            block_count +=
                blocks_for(target, tiles, job.sums[sum_count].is_by_element, NarrowShape::kRows, NarrowShape::kColumns);
        }
        ++sum_count;
    };
    for (const Sum& sum : sums) {
        bool accumulate = sum.accumulate;
        for (size_t i = 0; i < sum.calls.size();) {
            const Call& call = sum.calls[i];
            const bool has_two = i + 1 < sum.calls.size() && is_narrow(call) && is_narrow(sum.calls[i + 1]);
            if (accumulate && i > 0) launch_job();  // it adds to what the last one writes
            if (is_narrow(call))
                add(call, has_two ? &sum.calls[i + 1] : nullptr, sum.out, accumulate);
            else
                run_tiled(call, sum.out, accumulate, tiles, stream);
            accumulate = true;
            i += has_two ? 2 : 1;
        }
    }
    launch_job();
}

template <class Real>
void DeviceLinear<Real>::apply(const TilesView& tiles, RowsView<const Real> in, RowsView<Real> out, bool accumulate,
                               cudaStream_t stream) const {
    const Call call = forward(in);
    const Sum sum = {{&call, 1}, out, accumulate};
    run({&sum, 1}, tiles, stream);
}

template <class Real>
void DeviceLinear<Real>::apply_transposed(const TilesView& tiles, RowsView<const Real> out_gradient,
                                          RowsView<Real> in_gradient, bool accumulate, cudaStream_t stream) const {
    const Call call = transposed(out_gradient);
    const Sum sum = {{&call, 1}, in_gradient, accumulate};
    run({&sum, 1}, tiles, stream);
}

template class DeviceLinear<float>;
template class DeviceLinear<double>;

}  // namespace mlff::equivariant::gpu
