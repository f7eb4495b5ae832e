// SPDX-License-Identifier: MIT
#include "mace/cuda/linear.h"

#include <algorithm>
#include <limits>

#include "device/cuda_check.h"
#include "mace/cuda/tensor_product.h"

namespace mlff::mace::cuda {
namespace {

using mlff::cuda::launch;

constexpr int kMostTargets = 16;  // of one launch

// One launch: as many blocks for each target as its rows (an atom and a component each) and columns need.
template <class Real>
struct LinearJob {
    typename DeviceLinear<Real>::Target targets[kMostTargets];
    int32_t first_block[kMostTargets];  // beyond the last target: more than there are blocks
    typename DeviceLinear<Real>::View map;
    TilesView tiles;
    RowsView<const Real> in;
    RowsView<Real> out;
    bool accumulate;
};

__host__ __device__ constexpr int divide_up(int a, int b) { return (a + b - 1) / b; }

// Rows and columns of one block of threads.
template <class Real>
struct Area {
    typename DeviceLinear<Real>::Target target;
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
    // Of packed matrices, from step to step.
    __device__ int64_t matrix_step() const { return int64_t{divide_up(target.stride, kProductColumns)} * kProductColumns * kStep<Real>; }
    __device__ Real* out_row(const LinearJob<Real>& job, int row) const {
        return job.out.of(atoms[row / target.components]) + target.offset + row % target.components * target.stride;
    }
};

// A row of the input.
template <class Real>
struct SourceRow {
    const Real* of_atom;
    int component;
    bool is_there;

    __device__ SourceRow(const LinearJob<Real>& job, const Area<Real>& area, int row)
        : of_atom(job.in.first), component(row % area.target.components), is_there(row < area.row_count) {
        if (is_there) of_atom = job.in.of(area.atoms[row / area.target.components]);
    }
    __device__ __forceinline__ const Real* at(const typename DeviceLinear<Real>::Step& step) const { return of_atom + step.offset + component * step.stride; }
};

template <class Real, int Count>
struct alignas(16) Numbers {
    Real of[Count];
};
template <class Real, int Count>
__device__ __forceinline__ void write(Numbers<Real, Count> numbers, Real* to, bool accumulate) {
    auto* place = reinterpret_cast<Numbers<Real, Count>*>(to);
    if (accumulate) {
        const Numbers<Real, Count> before = *place;
#pragma unroll
        for (int i = 0; i < Count; ++i) numbers.of[i] += before.of[i];
    }
    *place = numbers;
}
// Those of a lane for 16 columns of row g (`half` 0) or g + 8.
template <class Real>
__device__ __forceinline__ Numbers<Real, 4> four_of(const ProductSum<Real>& sum, int pair, int half) {
    return {{sum[2 * pair][2 * half], sum[2 * pair][2 * half + 1], sum[2 * pair + 1][2 * half], sum[2 * pair + 1][2 * half + 1]}};
}

// Copies 16 bytes to shared memory, zeros in place of those after `bytes`.
__device__ __forceinline__ void copy_async(void* to, const void* from, int bytes) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(static_cast<uint32_t>(__cvta_generic_to_shared(to))), "l"(from), "r"(bytes) : "memory");
}
__device__ __forceinline__ void end_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int Pending>
__device__ __forceinline__ void wait_for_copies() {
    asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
}

// Many rows: each warp computes RowTiles * kProductRows rows of its kProductColumns columns; the warps share the rows.
template <int RowTiles, int Warps>
struct TiledShape {
    static constexpr int kTiles = RowTiles, kThreads = 32 * Warps;
    static constexpr int kRows = RowTiles * kProductRows, kColumns = Warps * kProductColumns;
    static constexpr int kStages = 4;
    static constexpr int kMinBlocks = 384 / kThreads;
};
template <class Real, class Shape>
__global__ void __launch_bounds__(Shape::kThreads, Shape::kMinBlocks) tiled_kernel(const __grid_constant__ LinearJob<Real> job) {
    using Product = TensorProduct<Real>;
    constexpr int kPacksPerRow = kStepBytes / 16, kRowsAtOnce = Shape::kThreads / kPacksPerRow, kCopies = Shape::kRows / kRowsAtOnce;
    static_assert(Shape::kRows % kRowsAtOnce == 0);
    __shared__ Pack<Real> staged_rows[Shape::kStages][Shape::kRows][kPacksPerRow];
    __shared__ Pack<Real> staged_matrix[Shape::kStages][Shape::kColumns / 8][32];
    const Area<Real> area(job, Shape::kRows, Shape::kColumns);
    if (area.first_row >= area.row_count) return;
    const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
    const int g = lane / 4, q = lane % 4;
    const int own_column = area.first_column + warp * kProductColumns;
    const bool has_columns = own_column < area.target.stride;

    // What this thread copies: its share of a few rows, its share of the warp's part of the matrix.
    const auto make_row = [&](int i) { return SourceRow<Real>(job, area, area.first_row + thread / kPacksPerRow + i * kRowsAtOnce); };
    const Real* from[kCopies];
    int component[kCopies];
    bool is_there[kCopies];
#pragma unroll
    for (int i = 0; i < kCopies; ++i) {
        const SourceRow<Real> row = make_row(i);
        from[i] = row.of_atom + thread % kPacksPerRow * Pack<Real>::kCount;
        component[i] = row.component;
        is_there[i] = row.is_there;
    }
    const Real* matrix = area.matrix + int64_t{own_column} * kStep<Real> + lane * Pack<Real>::kCount;
    const int64_t matrix_step = area.matrix_step();
    const auto* steps = job.map.steps + area.target.first_step;
    const int step_count = area.target.step_count;
    auto next = step_count > 0 ? steps[0] : typename DeviceLinear<Real>::Step{};
    const auto stage = [&](int s) {
        if (s < step_count) {
            const int slot = s % Shape::kStages;
            const int numbers = min(max(next.copies - thread % kPacksPerRow * Pack<Real>::kCount, 0), Pack<Real>::kCount);
#pragma unroll
            for (int i = 0; i < kCopies; ++i)
                copy_async(&staged_rows[slot][thread / kPacksPerRow + i * kRowsAtOnce][thread % kPacksPerRow], from[i] + next.offset + component[i] * next.stride,
                           is_there[i] ? numbers * static_cast<int>(sizeof(Real)) : 0);
            if (has_columns)
#pragma unroll
                for (int i = 0; i < kColumnTiles; ++i)
                    copy_async(&staged_matrix[slot][warp * kColumnTiles + i][lane], matrix + i * (8 * kStep<Real>), 16);
            matrix += matrix_step;
            next = steps[min(s + 1, step_count - 1)];
        }
        end_copies();
    };

    ProductSum<Real> sum[Shape::kTiles] = {};
#pragma unroll
    for (int s = 0; s < Shape::kStages - 1; ++s) stage(s);
    for (int s = 0; s < step_count; ++s) {
        wait_for_copies<Shape::kStages - 2>();
        __syncthreads();  // all copies of step s are there, and all warps are done with step s - 1
        stage(s + Shape::kStages - 1);
        if (!has_columns) continue;
        const int slot = s % Shape::kStages;
        typename Product::Operand columns[kColumnTiles];
#pragma unroll
        for (int i = 0; i < kColumnTiles; ++i) columns[i] = Product::split(staged_matrix[slot][warp * kColumnTiles + i][lane]);
#pragma unroll
        for (int t = 0; t < Shape::kTiles; ++t) {
            const auto top = Product::split(staged_rows[slot][t * kProductRows + g][q]), bottom = Product::split(staged_rows[slot][t * kProductRows + 8 + g][q]);
            Product::add(top, bottom, columns, sum[t]);
        }
    }

#pragma unroll
    for (int t = 0; t < Shape::kTiles; ++t)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int row = area.first_row + t * kProductRows + 8 * half + g;
            if (row >= area.row_count) continue;
            Real* to = area.out_row(job, row);
#pragma unroll
            for (int pair = 0; pair < 2; ++pair) {
                const int column = own_column + 16 * pair + 4 * q;
                if (column < area.target.stride) write(four_of<Real>(sum[t], pair, half), to + column, job.accumulate);
            }
        }
}

// Few rows: a block computes kProductRows rows of kProductColumns columns, each warp a part of the depth.
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
    if (area.first_row >= area.row_count) return;
    const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
    const int g = lane / 4, q = lane % 4;
    const int begin = area.target.step_count * warp / kWarps, end = area.target.step_count * (warp + 1) / kWarps;
    const auto* steps = job.map.steps + area.target.first_step;
    const int64_t matrix_step = area.matrix_step();
    const Real* matrix = area.matrix + int64_t{area.first_column} * kStep<Real> + lane * Pack<Real>::kCount;
    const SourceRow<Real> top(job, area, area.first_row + g), bottom(job, area, area.first_row + 8 + g);
    const auto load = [&](const SourceRow<Real>& row, const typename DeviceLinear<Real>::Step& step) {
        Pack<Real> numbers = {};
        if (row.is_there) numbers = *reinterpret_cast<const Pack<Real>*>(row.at(step) + q * Pack<Real>::kCount);
#pragma unroll
        for (int i = 0; i < Pack<Real>::kCount; ++i)
            if (q * Pack<Real>::kCount + i >= step.copies) numbers.of[i] = 0;
        return numbers;
    };

    ProductSum<Real> sum = {};
    for (int first = begin; first < end; first += kAhead) {
        Pack<Real> packed_columns[kAhead][kColumnTiles], packed_top[kAhead], packed_bottom[kAhead];
#pragma unroll
        for (int s = 0; s < kAhead; ++s)
            if (first + s < end)
#pragma unroll
                for (int i = 0; i < kColumnTiles; ++i)
                    packed_columns[s][i] = *reinterpret_cast<const Pack<Real>*>(matrix + (first + s) * matrix_step + i * (8 * kStep<Real>));
#pragma unroll
        for (int s = 0; s < kAhead; ++s)
            if (first + s < end) {
                const auto step = steps[first + s];
                packed_top[s] = load(top, step);
                packed_bottom[s] = load(bottom, step);
            }
#pragma unroll
        for (int s = 0; s < kAhead; ++s)
            if (first + s < end) {
                typename Product::Operand columns[kColumnTiles];
#pragma unroll
                for (int i = 0; i < kColumnTiles; ++i) columns[i] = Product::split(packed_columns[s][i]);
                Product::add(Product::split(packed_top[s]), Product::split(packed_bottom[s]), columns, sum);
            }
    }

#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
        for (int pair = 0; pair < 2; ++pair) write(four_of<Real>(sum, pair, half), &partial[warp][8 * half + g][16 * pair + 4 * q], false);
    __syncthreads();
    constexpr int kPerThread = kProductRows * kProductColumns / NarrowShape::kThreads;
    const int row = thread * kPerThread / kProductColumns, column = thread * kPerThread % kProductColumns;
    if (area.first_row + row >= area.row_count || area.first_column + column >= area.target.stride) return;
    Real* to = area.out_row(job, area.first_row + row) + area.first_column + column;
#pragma unroll
    for (int i = 0; i < kPerThread; ++i) {
        Real total = 0;
#pragma unroll
        for (int w = 0; w < kWarps; ++w) total += partial[w][row][column + i];
        to[i] = job.accumulate ? to[i] + total : total;
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

// Blocks of threads for a target. With one matrix for all elements the rows of all atoms follow each other, else those of a tile.
template <class Target>
int blocks_for(const Target& target, const TilesView& tiles, bool is_by_element, int rows_per_block, int columns_per_block) {
    const int row_blocks = is_by_element ? tiles.tile_count * divide_up(kAtomsPerTile * target.components, rows_per_block)
                                         : divide_up(tiles.atom_count * target.components, rows_per_block);
    return row_blocks * divide_up(target.stride, columns_per_block);
}

template <class Real, class Shape>
void run_shape(void (*kernel)(LinearJob<Real>), const std::vector<typename DeviceLinear<Real>::Target>& targets, LinearJob<Real> job, cudaStream_t stream) {
    for (size_t begin = 0; begin < targets.size(); begin += kMostTargets) {
        int blocks = 0;
        for (size_t i = 0; i < kMostTargets; ++i) {
            const bool is_target = begin + i < targets.size();
            job.first_block[i] = is_target ? blocks : std::numeric_limits<int32_t>::max();
            if (!is_target) continue;
            job.targets[i] = targets[begin + i];
            blocks += blocks_for(targets[begin + i], job.tiles, job.map.matrices_per_element > 0, Shape::kRows, Shape::kColumns);
        }
        launch("a linear map", kernel, blocks, Shape::kThreads, stream, job);
    }
}

}  // namespace

template <class Real>
typename DeviceLinear<Real>::Direction DeviceLinear<Real>::make_direction(const Linear& linear, const cpu::RowLayout& in, const cpu::RowLayout& out, bool transposed,
                                                                         cudaStream_t stream) {
    const auto in_pieces = match_blocks(linear.in, in), out_pieces = match_blocks(linear.out, out);
    const cpu::RowLayout& targets_layout = transposed ? in : out;
    std::vector<Step> steps;
    Direction direction;
    // All matrices of element 0, then those of the next: first the places, then the numbers.
    struct Place {
        const Linear::Path* path;
        Piece from, to;
        int64_t matrix, matrix_step;
    };
    std::vector<Place> places;
    int64_t size = 0;
    for (const cpu::RowBlock& block : targets_layout.blocks) {
        Target target = {block.offset, block.stride, block.components, static_cast<int32_t>(steps.size()), 0, size};
        const int64_t matrix_step = int64_t{divide_up(block.stride, kProductColumns)} * kProductColumns * kStep<Real>;
        for (const Linear::Path& path : linear.paths)
            for (const Piece& from : in_pieces[static_cast<size_t>(path.in_block)])
                for (const Piece& to : out_pieces[static_cast<size_t>(path.out_block)]) {
                    if ((transposed ? from : to).block.offset != block.offset) continue;
                    const cpu::RowBlock& source = (transposed ? to : from).block;
                    places.push_back({&path, from, to, size, matrix_step});
                    for (int begin = 0; begin < source.copies; begin += kStep<Real>) {
                        steps.push_back({source.offset + begin, source.stride, std::min(source.copies - begin, kStep<Real>)});
                        size += matrix_step;
                    }
                }
        target.step_count = static_cast<int32_t>(steps.size()) - target.first_step;
        direction.targets.push_back(target);
    }
    std::vector<Real> matrices(static_cast<size_t>(size * linear.element_count), Real(0));
    for (const Place& place : places) {
        const int64_t copies_in = linear.in[place.path->in_block].multiplicity, copies_out = linear.out[place.path->out_block].multiplicity;
        for (int64_t z = 0; z < linear.element_count; ++z)
            for (int u = 0; u < place.from.block.copies; ++u)
                for (int w = 0; w < place.to.block.copies; ++w) {
                    const double weight = place.path->weight[static_cast<size_t>((z * copies_in + place.from.first_copy + u) * copies_out + place.to.first_copy + w)];
                    const int depth = transposed ? w : u, column = transposed ? u : w;
                    const int64_t index = place.matrix + depth / kStep<Real> * place.matrix_step + packed_index<Real>(depth % kStep<Real>, column);
                    matrices[static_cast<size_t>(z * size + index)] = static_cast<Real>(weight);
                }
    }
    direction.matrices_per_element = linear.element_count > 1 ? size : 0;
    // The longest blocks first, so that short ones fill the end.
    std::stable_sort(direction.targets.begin(), direction.targets.end(), [](const Target& a, const Target& b) { return a.step_count > b.step_count; });
    direction.steps.upload(steps.data(), static_cast<int64_t>(steps.size()), "the model", stream);
    direction.matrices.upload(matrices.data(), static_cast<int64_t>(matrices.size()), "the model", stream);
    return direction;
}

template <class Real>
DeviceLinear<Real>::DeviceLinear(const Linear& linear, const cpu::RowLayout& in, const cpu::RowLayout& out, cudaStream_t stream)
    : forward_(make_direction(linear, in, out, false, stream)), transposed_(make_direction(linear, in, out, true, stream)) {}

template <class Real>
void DeviceLinear<Real>::run(const Direction& direction, const TilesView& tiles, RowsView<const Real> in, RowsView<Real> out, bool accumulate, cudaStream_t stream) {
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
    // The largest shape that still gives every multiprocessor something to do.
    const auto blocks = [&](int rows_per_block, int columns_per_block) {
        int count = 0;
        for (const Target& target : direction.targets) count += blocks_for(target, tiles, false, rows_per_block, columns_per_block);
        return count;
    };
    if (blocks(Wide::kRows, Wide::kColumns) >= 128)
        run_shape<Real, Wide>(tiled_kernel<Real, Wide>, direction.targets, job, stream);
    else if (blocks(Medium::kRows, Medium::kColumns) >= 192)
        run_shape<Real, Medium>(tiled_kernel<Real, Medium>, direction.targets, job, stream);
    else
        run_shape<Real, NarrowShape>(narrow_kernel<Real>, direction.targets, job, stream);
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
