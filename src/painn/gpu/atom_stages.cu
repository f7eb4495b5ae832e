// SPDX-License-Identifier: MIT
#include "painn/gpu/atom_stages.h"

#include <algorithm>

#include "gpu/engine/four.h"
#include "gpu/engine/product_lane.h"
#include "gpu/engine/warp.h"
#include "gpu/runtime/cuda_check.h"
#include "painn/gpu/activation.h"
#include "painn/gpu/cluster_stages.h"
#include "painn/gpu/messages.h"
#include "painn/gpu/sizes.h"
#include "painn/gpu/widths.h"

namespace mlff::painn::gpu {
namespace {

using namespace mlff::gpu;

// A thread block has kRows atoms. Warp w has channels 16 w ... 16 w + 15 through all stages. Of these, lane 4 g + q has
// channels 4 q ... 4 q + 3 of the atoms 16 t + 8 h + g: its cells [t][h].
template <class StoredIn, int WidthIn, int RowTilesIn>
struct Shape {
    using Stored = StoredIn;
    using Real = RealOf<Stored>;
    using Block = RowBlock<Stored>;
    static constexpr int kWidth = WidthIn, kRowTiles = RowTilesIn;
    static constexpr int kRows = kProductRows * kRowTiles;
    static constexpr int kThreads = 32 * (kWidth / 16);
    // Thread blocks per multiprocessor, so that there is work while one of them waits for memory.
    static constexpr int kThreadBlocks = kRowTiles > 1 && kThreads <= 256 ? 512 / kThreads : 1;
    // Blocks of a matrix that are loaded ahead. With more rows there is more to do between two of them, and registers
    // are few. `fast` has a third to do, and half of the registers of a block.
    static constexpr int kAhead = kIsFast<Stored> ? 4 : sizeof(Real) == 8 ? 2 : 4 / kRowTiles;
    // The three components of the vectors of 16 kPassTiles atoms are multiplied together, so that the matrix is read
    // once for them. More atoms need too many registers, or in the reverse too much shared memory.
    static constexpr int kPassTiles = kRowTiles > 2 ? 2 : 1, kPasses = kRowTiles / kPassTiles;
    static constexpr int kVectorTiles = 3 * kPassTiles;
    // Rows in shared memory, in blocks: a part has all F channels of all atoms, [F / 16][kRowTiles], and a pass F
    // channels of the vectors of its atoms, [F / 16][kVectorTiles].
    static constexpr int kDepth = kWidth / kBlockChannels;
    static constexpr int kPartBlocks = kDepth * kRowTiles, kPassBlocks = kDepth * kVectorTiles;
    // Parts that have room for the cells of all threads.
    static constexpr int kParkedParts = sizeof(Real) * kProductRows * kBlockChannels > sizeof(Block) ? 2 : 1;
    static constexpr size_t kForwardBytes = sizeof(Block) * (2 + kParkedParts) * kPartBlocks;
    static constexpr size_t kReverseBytes = sizeof(Block) * std::max(3 * kPartBlocks, 2 * kPassBlocks);
};

// Numbers of a lane: 4 adjacent columns of each of its atoms.
template <class S>
struct Cells {
    typename S::Real of[S::kRowTiles][2][4];
};

// Where the cells of a thread are. Arrays are [atom][Rows][F]. All addresses of an array are constants beyond that of
// the first cell, so that they need no registers. There may be no atom for a cell: then zeros are read, and nothing is
// written.
template <class S>
struct CellPlace : ProductLane {
    using Real = typename S::Real;
    int64_t first_atom;  // of the thread block
    int column;
    int atoms_left;  // from row g on, or kRows if there are more

    __device__ explicit CellPlace(int64_t atom_count)
        : first_atom(blockIdx.x * int64_t{S::kRows}),
          column(16 * warp + 4 * q),
          atoms_left(static_cast<int>(min(atom_count - first_atom - g, int64_t{S::kRows}))) {}

    // From here on addresses are computed afresh. Without this the compiler keeps those of the stages before, and runs
    // out of registers.
    __device__ __forceinline__ void forget_addresses() { column = opaque(column); }

    __device__ static constexpr int atoms_before(int t, int h) { return kProductRows * t + 8 * h; }
    __device__ bool has(int t, int h) const { return atoms_before(t, h) < atoms_left; }
    template <int Rows, class Number>
    __device__ Number* at(Number* array, int row, int t, int h) const {
        return array + first_atom * (Rows * S::kWidth) + (g * (Rows * S::kWidth) + column) +
               (atoms_before(t, h) * Rows + row) * S::kWidth;
    }
    template <int Rows>
    __device__ Four<Real> load(const Real* array, int row, int t, int h) const {
        return has(t, h) ? load_four(at<Rows>(array, row, t, h)) : Four<Real>{};
    }
    template <int Rows, class Number>
    __device__ void store(Number* array, int row, int t, int h, const Real (&numbers)[4]) const {
        if (has(t, h)) store_four(at<Rows>(array, row, t, h), numbers);
    }
};

// Calls action(t, h) for all rows of a lane.
template <class S, class Action>
__device__ __forceinline__ void for_rows(const Action& action) {
#pragma unroll
    for (int t = 0; t < S::kRowTiles; ++t)
#pragma unroll
        for (int h = 0; h < 2; ++h) action(t, h);
}

// Writes the cells of 16 atoms to a part of the rows in shared memory. All lanes of a warp must call it.
template <class S>
__device__ __forceinline__ void store_cells(const CellPlace<S>& place, typename S::Block* part, int t,
                                            const typename S::Real (&cells)[2][4]) {
    store_rows(part[place.warp * S::kRowTiles + t], place.lane, cells);
}
template <class S>
__device__ __forceinline__ void store_cells(const CellPlace<S>& place, typename S::Block* part, const Cells<S>& cells) {
#pragma unroll
    for (int t = 0; t < S::kRowTiles; ++t) store_cells(place, part, t, cells.of[t]);
}

// Reads a row of 16 atoms, from an array [atom][Rows][F].
template <int Rows, class S>
__device__ __forceinline__ void load_cells(const CellPlace<S>& place, const typename S::Real* array, int row, int t,
                                           typename S::Real (&cells)[2][4]) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        const auto four = place.template load<Rows>(array, row, t, h);
#pragma unroll
        for (int i = 0; i < 4; ++i) cells[h][i] = four.of[i];
    }
}

// Writes Parts rows of each atom to shared memory. `from` is [atom][Parts][F].
template <class S, int Parts>
__device__ __forceinline__ void copy_rows(const CellPlace<S>& place, const typename S::Real* from,
                                          typename S::Block* to) {
#pragma unroll
    for (int part = 0; part < Parts; ++part)
#pragma unroll
        for (int t = 0; t < S::kRowTiles; ++t) {
            typename S::Real cells[2][4];
            load_cells<Parts>(place, from, part, t, cells);
            store_cells(place, to + part * S::kPartBlocks, t, cells);
        }
}

// The product of rows of `Depth` channels and the columns of this thread's cells, in a group of F columns of the
// matrix.
template <class S, int Depth>
struct Product : RowProduct<typename S::Stored, Depth / kBlockChannels, S::kAhead> {
    __device__ __forceinline__ Product(const CellPlace<S>& place, const RowMatrix<typename S::Stored>& matrix,
                                       int group = 0)
        : RowProduct<typename S::Stored, Depth / kBlockChannels, S::kAhead>(matrix, group * S::kWidth + 16 * place.warp,
                                                                            place.lane) {}
};

template <class S>
__device__ __forceinline__ void add_bias(const CellPlace<S>& place, const typename S::Real* bias, Cells<S>& cells) {
    const auto own = load_four(bias + place.column);
    for_rows<S>([&](int t, int h) {
#pragma unroll
        for (int i = 0; i < 4; ++i) cells.of[t][h][i] += own.of[i];
    });
}

// Writes silu(product + bias) to `to` in shared memory, and the value before the activation to `kept`.
template <class S, int Depth>
__device__ __forceinline__ void hidden_layer(const CellPlace<S>& place, Product<S, Depth>& product,
                                             const typename S::Real* bias, const typename S::Block* rows,
                                             typename S::Real* kept, typename S::Block* to) {
    Cells<S> hidden;
    product.multiply(rows, hidden.of);
    add_bias(place, bias, hidden);
    for_rows<S>([&](int t, int h) {
        auto& cell = hidden.of[t][h];
        place.template store<1>(kept, 0, t, h, cell);
#pragma unroll
        for (int i = 0; i < 4; ++i) cell[i] = silu(cell[i]);
    });
    store_cells(place, to, hidden);
}

// The message network of the next block. `scalars` is a part of the rows in shared memory, `hidden` another, which is
// free.
template <class S>
__device__ __forceinline__ void send(const CellPlace<S>& place, const AtomStage<typename S::Stored>& stage,
                                     Product<S, S::kWidth>& first_product, const typename S::Block* scalars,
                                     typename S::Block* hidden) {
    using Real = typename S::Real;
    constexpr int F = S::kWidth;
    hidden_layer(place, first_product, stage.message.hidden.bias, scalars, stage.kept_message.hidden, hidden);
    __syncthreads();
#pragma unroll 1
    for (int part = 0; part < 3; ++part) {
        Product<S, F> product(place, stage.message.output.rows, part);
        Cells<S> phi;
        product.multiply(hidden, phi.of);
        add_bias(place, stage.message.output.bias + part * F, phi);
        for_rows<S>([&](int t, int h) {
            const auto& cell = phi.of[t][h];
            if (part != 1) return place.template store<kSentRows>(stage.sent, part / 2, t, h, cell);
            place.template store<1>(stage.kept_message.phi_v, 0, t, h, cell);
#pragma unroll
            for (int k = 0; k < 3; ++k) {
                // This thread has written these numbers itself.
                const Four<Real> vector = place.template load<3>(stage.new_vectors, k, t, h);
                Real changed[4];
#pragma unroll
                for (int i = 0; i < 4; ++i) changed[i] = cell[i] * vector.of[i];
                place.template store<kSentRows>(stage.sent, 2 + k, t, h, changed);
            }
        });
    }
}

// Computes energies from `scalars`, a part of the rows in shared memory. `partial` is scratch memory there,
// [kRows][F / 32].
template <class S>
__device__ __forceinline__ void read_out(const CellPlace<S>& place, const ReadoutView<typename S::Stored>& readout,
                                         int64_t atom_count, const typename S::Block* scalars, double* partial) {
    constexpr int F = S::kWidth, kHalf = F / 2, kParts = kHalf / 16;
    if (place.warp < kParts) {
        Product<S, F> product(place, readout.hidden.rows);
        Cells<S> hidden;
        product.multiply(scalars, hidden.of);
        add_bias(place, readout.hidden.bias, hidden);
        auto* const kept = readout.kept_hidden + (place.first_atom + place.g) * kHalf + place.column;
        for_rows<S>([&](int t, int h) {
            const auto& cell = hidden.of[t][h];
            double sum = 0;
#pragma unroll
            for (int i = 0; i < 4; ++i) sum += static_cast<double>(silu(cell[i])) * readout.output[place.column + i];
            if (place.has(t, h)) store_four(kept + CellPlace<S>::atoms_before(t, h) * kHalf, cell);
            sum += __shfl_xor_sync(kAllLanes, sum, 1);
            sum += __shfl_xor_sync(kAllLanes, sum, 2);
            if (place.q == 0) partial[(CellPlace<S>::atoms_before(t, h) + place.g) * kParts + place.warp] = sum;
        });
    }
    __syncthreads();
    for (int row = static_cast<int>(threadIdx.x); row < S::kRows; row += S::kThreads) {
        const int64_t atom = place.first_atom + row;
        if (atom >= atom_count) continue;
        const int32_t element = readout.elements[atom];
        double sum = readout.output_bias;
        for (int part = 0; part < kParts; ++part) sum += partial[row * kParts + part];
        readout.energies[atom] =
            readout.element_energies[element] + readout.scales[element] * sum + readout.energies[atom];
    }
}

// Writes U v and V v to stage.kept.mixed. Norms wait in stage.kept.hidden, where this thread writes something else
// later: there are no registers for them. `vectors` [kPasses][kPassBlocks] is shared memory.
template <class S>
__device__ __forceinline__ void mix_vectors(const CellPlace<S>& place, const AtomStage<typename S::Stored>& stage,
                                            const typename S::Block* vectors) {
    using Real = typename S::Real;
#pragma unroll 1
    for (int group = 0; group < 2; ++group)
#pragma unroll 1
        for (int pass = 0; pass < S::kPasses; ++pass) {
            Product<S, S::kWidth> product(place, stage.mix.rows, group);
            Real mixed[S::kVectorTiles][2][4];
            product.multiply(vectors + pass * S::kPassBlocks, mixed);
#pragma unroll
            for (int pass_tile = 0; pass_tile < S::kPassTiles; ++pass_tile)
#pragma unroll
                for (int h = 0; h < 2; ++h) {
                    const int t = pass * S::kPassTiles + pass_tile;
                    Real norm[4] = {};
#pragma unroll
                    for (int k = 0; k < 3; ++k) {
                        const auto& cell = mixed[k * S::kPassTiles + pass_tile][h];
                        place.template store<6>(stage.kept.mixed, 3 * group + k, t, h, cell);
#pragma unroll
                        for (int i = 0; i < 4; ++i) norm[i] += cell[i] * cell[i];
                    }
                    if (group == 0) continue;
#pragma unroll
                    for (int i = 0; i < 4; ++i) norm[i] = sqrt(norm[i] + static_cast<Real>(kNormFloor));
                    place.template store<1>(stage.kept.hidden, 0, t, h, norm);
                }
        }
}

// Cells that wait in shared memory while there are no registers for them. A thread has its own place.
template <class S>
class ParkedCells {
public:
    using Real = typename S::Real;
    static_assert(sizeof(Real) * S::kRows * S::kWidth <= sizeof(typename S::Block) * S::kParkedParts * S::kPartBlocks);

    __device__ __forceinline__ explicit ParkedCells(typename S::Block* part)
        : own_(reinterpret_cast<Real*>(part) + 4 * threadIdx.x) {}
    __device__ __forceinline__ void store(const Cells<S>& cells) {
        for_rows<S>([&](int t, int h) { store_four(at(t, h), cells.of[t][h]); });
    }
    __device__ __forceinline__ Four<Real> load(int t, int h) const { return load_four(at(t, h)); }

private:
    __device__ __forceinline__ Real* at(int t, int h) const { return own_ + (2 * t + h) * (4 * S::kThreads); }

    Real* own_;
};

template <class S>
__global__ void __launch_bounds__(S::kThreads, S::kThreadBlocks)
    update_kernel(const __grid_constant__ AtomStage<typename S::Stored> stage) {
    mlff::gpu::await_predecessor();
    using Real = typename S::Real;
    using Block = typename S::Block;
    constexpr int F = S::kWidth;
    CellPlace<S> place(stage.atom_count);
    Block* const vectors = reinterpret_cast<Block*>(launched_shared_memory());  // [kPasses][kPassBlocks]
    Block* const scalars = vectors;                                             // s, n, after the vectors were read
    Block* const hidden = scalars + (1 + S::kParkedParts) * S::kPartBlocks;
#pragma unroll
    for (int k = 0; k < 3; ++k)
#pragma unroll
        for (int t = 0; t < S::kRowTiles; ++t) {
            const int tile = place.warp * S::kVectorTiles + k * S::kPassTiles + t % S::kPassTiles;
            Real cells[2][4];
            load_cells<3>(place, stage.vectors, k, t, cells);
            store_rows(vectors[t / S::kPassTiles * S::kPassBlocks + tile], place.lane, cells);
        }
    __syncthreads();
    mix_vectors(place, stage, vectors);
    Product<S, 2 * F> hidden_product(place, stage.update.hidden.rows);
    __syncthreads();  // vectors are no longer needed
    copy_rows<S, 1>(place, stage.scalars, scalars);
    copy_rows<S, 1>(place, stage.kept.hidden, scalars + S::kPartBlocks);
    __syncthreads();
    hidden_layer(place, hidden_product, stage.update.hidden.bias, scalars, stage.kept.hidden, hidden);
    __syncthreads();  // s and n are no longer needed

    place.forget_addresses();
    // The gates a_vv, a_sv and a_ss, one after the other: there are no registers for all of them.
    Cells<S> gate;
    if (!stage.is_last) {
        Product<S, F> product(place, stage.update.output.rows, 2);
        product.multiply(hidden, gate.of);
        add_bias(place, stage.update.output.bias + 2 * F, gate);
    }
    ParkedCells<S> change(scalars + S::kPartBlocks);  // what is added to the scalars
    {
        Cells<S> dot = {};  // (U v)(V v), from numbers that this thread has stored itself
        for_rows<S>([&](int t, int h) {
#pragma unroll
            for (int k = 0; k < 3; ++k) {
                const Four<Real> u = place.template load<6>(stage.kept.mixed, k, t, h),
                                 v = place.template load<6>(stage.kept.mixed, 3 + k, t, h);
#pragma unroll
                for (int i = 0; i < 4; ++i) dot.of[t][h][i] += u.of[i] * v.of[i];
                if (stage.is_last) continue;
                const Four<Real> before = place.template load<3>(stage.vectors, k, t, h);
                Real sum[4];
#pragma unroll
                for (int i = 0; i < 4; ++i) sum[i] = before.of[i] + gate.of[t][h][i] * u.of[i];
                place.template store<3>(stage.new_vectors, k, t, h, sum);
            }
            if (!stage.is_last) place.template store<2>(stage.kept.gates, 1, t, h, gate.of[t][h]);
        });
        change.store(dot);
    }
    Product<S, F> scalar_product(place, stage.update.output.rows, 1);
    scalar_product.multiply(hidden, gate.of);
    add_bias(place, stage.update.output.bias + F, gate);
    for_rows<S>([&](int t, int h) {
        place.template store<2>(stage.kept.gates, 0, t, h, gate.of[t][h]);
        const Four<Real> dot = change.load(t, h);
#pragma unroll
        for (int i = 0; i < 4; ++i) gate.of[t][h][i] *= dot.of[i];
    });
    change.store(gate);
    Product<S, F> last_product(place, stage.update.output.rows, 0);
    last_product.multiply(hidden, gate.of);
    add_bias(place, stage.update.output.bias, gate);
    for_rows<S>([&](int t, int h) {
        const Four<Real> before = place.template load<1>(stage.scalars, 0, t, h), more = change.load(t, h);
        Real(&after)[4] = gate.of[t][h];
#pragma unroll
        for (int i = 0; i < 4; ++i) after[i] = before.of[i] + (after[i] + more.of[i]);
        if (!stage.is_last) return place.template store<1>(stage.new_scalars, 0, t, h, after);
        if (!stage.readout.descriptors || !place.has(t, h)) return;
        double* const descriptors = place.template at<1>(stage.readout.descriptors, 0, t, h);
#pragma unroll
        for (int i = 0; i < 4; ++i) descriptors[i] = static_cast<double>(after[i]);
    });
    store_cells(place, scalars, gate);
    if (stage.is_last) {
        __syncthreads();  // new scalars are written, and `hidden` is no longer needed
        read_out(place, stage.readout, stage.atom_count, scalars, reinterpret_cast<double*>(hidden));
    } else {
        Product<S, F> message_product(place, stage.message.hidden.rows);
        __syncthreads();
        send(place, stage, message_product, scalars, hidden);
    }
}

// The gradient of the scalars after the last block. `hidden` is a part of the rows in shared memory.
template <class S>
__device__ __forceinline__ void reverse_readout(const CellPlace<S>& place,
                                                const ReadoutView<typename S::Stored>& readout,
                                                typename S::Block* hidden, Cells<S>& gradient) {
    using Real = typename S::Real;
    constexpr int F = S::kWidth, kHalf = F / 2;
    Product<S, kHalf> product(place, readout.hidden.transposed_rows);
    if (place.warp < kHalf / 16) {
        Cells<S> cells = {};
        for_rows<S>([&](int t, int h) {
            if (!place.has(t, h)) return;
            const int64_t atom = place.first_atom + place.g + CellPlace<S>::atoms_before(t, h);
            const Four<Real> before = load_four(readout.kept_hidden + atom * kHalf + place.column);
            const double scale = readout.scales[readout.elements[atom]];
#pragma unroll
            for (int i = 0; i < 4; ++i)
                cells.of[t][h][i] =
                    static_cast<Real>(scale * readout.output[place.column + i]) * silu_slope(before.of[i]);
        });
        store_cells(place, hidden, cells);
    }
    __syncthreads();
    product.multiply(hidden, gradient.of);
}

// Replaces the first part of `rows`, in shared memory, by (its first `parts` times the transposed output matrix) times
// the slope of the activation.
template <class S>
__device__ __forceinline__ void reverse_output(const CellPlace<S>& place, Product<S, 3 * S::kWidth>& product,
                                               const typename S::Real* kept_hidden, typename S::Block* rows,
                                               int parts) {
    static_assert(2 * S::kDepth % Product<S, 3 * S::kWidth>::kAhead == 0);
    Cells<S> gradient;
    product.multiply(rows, gradient.of, parts * S::kDepth);
    for_rows<S>([&](int t, int h) {
        const auto before = place.template load<1>(kept_hidden, 0, t, h);
#pragma unroll
        for (int i = 0; i < 4; ++i) gradient.of[t][h][i] *= silu_slope(before.of[i]);
    });
    __syncthreads();  // rows have been read
    store_cells(place, rows, gradient);
}

// Writes a row of the gradient for neighbours.
template <class S>
__device__ __forceinline__ void store_gathered(const CellPlace<S>& place, const AtomReverse<typename S::Stored>& stage,
                                               int row, int t, int h, const typename S::Real (&numbers)[4]) {
    if constexpr (kIsFast<typename S::Stored>)
        if (stage.gathered) place.template store<kGradientRows>(stage.gathered, row, t, h, numbers);
}

template <class S>
__global__ void __launch_bounds__(S::kThreads, S::kThreadBlocks)
    reverse_update_kernel(const __grid_constant__ AtomReverse<typename S::Stored> stage) {
    mlff::gpu::await_predecessor();
    using Real = typename S::Real;
    using Block = typename S::Block;
    constexpr int F = S::kWidth;
    CellPlace<S> place(stage.atom_count);
    Block* const rows = reinterpret_cast<Block*>(launched_shared_memory());  // three parts, in the end one pass
    // There are no registers for gradients that are needed later. They wait in these rows of stage.gradient, where this
    // thread writes the results of the same atoms and channels in the end.
    constexpr int kParkedScalars = 1, kParkedNorms = 2;

    // The gradient of the scalars after this block.
    Cells<S> scalars;
    if (stage.is_last) {
        reverse_readout(place, stage.readout, rows, scalars);
    } else {
        Product<S, 3 * F> output_product(place, stage.message.output.transposed_rows);
        copy_rows<S, 3>(place, stage.phi_gradient, rows);
        __syncthreads();
        reverse_output(place, output_product, stage.kept_message.hidden, rows, 3);
        Product<S, F> product(place, stage.message.hidden.transposed_rows);
        __syncthreads();
        product.multiply(rows, scalars.of);
        for_rows<S>([&](int t, int h) {
            const Four<Real> more = place.template load<kGradientRows>(stage.gradient_after, 0, t, h);
#pragma unroll
            for (int i = 0; i < 4; ++i) scalars.of[t][h][i] += more.of[i];
        });
    }
    __syncthreads();  // rows have been read

    place.forget_addresses();
    // Gradients of the three gates a_ss, a_sv, a_vv.
#pragma unroll
    for (int t = 0; t < S::kRowTiles; ++t) {
        Real dot[2][4] = {}, along[2][4] = {};
#pragma unroll
        for (int h = 0; h < 2; ++h) {
#pragma unroll
            for (int k = 0; k < 3; ++k) {
                const Four<Real> u = place.template load<6>(stage.kept.mixed, k, t, h),
                                 v = place.template load<6>(stage.kept.mixed, 3 + k, t, h);
#pragma unroll
                for (int i = 0; i < 4; ++i) dot[h][i] += u.of[i] * v.of[i];
                if (stage.is_last) continue;
                const Four<Real> gradient = place.template load<3>(stage.vectors_gradient, k, t, h);
#pragma unroll
                for (int i = 0; i < 4; ++i) along[h][i] += u.of[i] * gradient.of[i];
            }
#pragma unroll
            for (int i = 0; i < 4; ++i) dot[h][i] *= scalars.of[t][h][i];
        }
#pragma unroll
        for (int h = 0; h < 2; ++h)
            place.template store<kGradientRows>(stage.gradient, kParkedScalars, t, h, scalars.of[t][h]);
        store_cells(place, rows, t, scalars.of[t]);
        store_cells(place, rows + S::kPartBlocks, t, dot);
        if (!stage.is_last) store_cells(place, rows + 2 * S::kPartBlocks, t, along);
    }
    Product<S, 3 * F> gate_product(place, stage.update.output.transposed_rows);
    __syncthreads();
    reverse_output(place, gate_product, stage.kept.hidden, rows, stage.is_last ? 2 : 3);  // the last block has no a_vv
    Product<S, F> scalar_product(place, stage.update.hidden.transposed_rows, 0);
    __syncthreads();
    Cells<S> input;  // s, then n
    scalar_product.multiply(rows, input.of);
    for_rows<S>([&](int t, int h) {
        const Four<Real> scalar = place.template load<kGradientRows>(stage.gradient, kParkedScalars, t, h);
#pragma unroll
        for (int i = 0; i < 4; ++i) input.of[t][h][i] += scalar.of[i];
        place.template store<kGradientRows>(stage.gradient, 0, t, h, input.of[t][h]);
        store_gathered(place, stage, 0, t, h, input.of[t][h]);
    });
    Product<S, F> norm_product(place, stage.update.hidden.transposed_rows, 1);
    norm_product.multiply(rows, input.of);
    for_rows<S>(
        [&](int t, int h) { place.template store<kGradientRows>(stage.gradient, kParkedNorms, t, h, input.of[t][h]); });

    place.forget_addresses();
    // Gradients of U v and V v, and of the vectors.
#pragma unroll 1
    for (int pass = 0; pass < S::kPasses; ++pass) {
        __syncthreads();  // rows have been read
#pragma unroll 1
        for (int pass_tile = 0; pass_tile < S::kPassTiles; ++pass_tile) {
            const int t = pass * S::kPassTiles + pass_tile;
            Real v[3][2][4], along_s[2][4], along_v[2][4], gate[2][4], vector_gate[2][4] = {};
            load_cells<kGradientRows>(place, stage.gradient, kParkedScalars, t, along_s);
            load_cells<kGradientRows>(place, stage.gradient, kParkedNorms, t, along_v);
            load_cells<2>(place, stage.kept.gates, 0, t, gate);
            if (!stage.is_last) load_cells<2>(place, stage.kept.gates, 1, t, vector_gate);
#pragma unroll
            for (int k = 0; k < 3; ++k) load_cells<6>(place, stage.kept.mixed, 3 + k, t, v[k]);
#pragma unroll
            for (int h = 0; h < 2; ++h)
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    Real square = static_cast<Real>(kNormFloor);
#pragma unroll
                    for (int k = 0; k < 3; ++k) square += v[k][h][i] * v[k][h][i];
                    along_s[h][i] *= gate[h][i];
                    along_v[h][i] /= sqrt(square);
                }
#pragma unroll
            for (int k = 0; k < 3; ++k) {
                Real u[2][4], gradient[2][4] = {};
                load_cells<6>(place, stage.kept.mixed, k, t, u);
                if (!stage.is_last) load_cells<3>(place, stage.vectors_gradient, k, t, gradient);
#pragma unroll
                for (int h = 0; h < 2; ++h)
#pragma unroll
                    for (int i = 0; i < 4; ++i) {
                        gradient[h][i] = vector_gate[h][i] * gradient[h][i] + along_s[h][i] * v[k][h][i];
                        v[k][h][i] = along_s[h][i] * u[h][i] + along_v[h][i] * v[k][h][i];
                    }
                Block* const to = rows + place.warp * S::kVectorTiles + k * S::kPassTiles + pass_tile;
                store_rows(to[0], place.lane, gradient);           // of U v
                store_rows(to[S::kPassBlocks], place.lane, v[k]);  // of V v
            }
        }
        place.forget_addresses();
        Product<S, 2 * F> product(place, stage.mix.transposed_rows);
        __syncthreads();
        Real vectors[S::kVectorTiles][2][4];
        product.multiply(rows, vectors);
#pragma unroll
        for (int tile = 0; tile < S::kVectorTiles; ++tile)
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                const int k = tile / S::kPassTiles, t = pass * S::kPassTiles + tile % S::kPassTiles;
                if (!stage.is_last) {
                    const Four<Real> gradient = place.template load<3>(stage.vectors_gradient, k, t, h);
#pragma unroll
                    for (int i = 0; i < 4; ++i) vectors[tile][h][i] += gradient.of[i];
                }
                place.template store<kGradientRows>(stage.gradient, 1 + k, t, h, vectors[tile][h]);
                store_gathered(place, stage, 1 + k, t, h, vectors[tile][h]);
            }
    }
}

template <class S>
void launch_update(const AtomStage<typename S::Stored>& stage, cudaStream_t stream) {
    const LaunchShape shape = {dim3(static_cast<unsigned>((stage.atom_count + S::kRows - 1) / S::kRows)), S::kThreads,
                               S::kForwardBytes};
    launch("updating atoms", update_kernel<S>, shape, stream, stage);
}
template <class S>
void launch_reverse(const AtomReverse<typename S::Stored>& stage, cudaStream_t stream) {
    const LaunchShape shape = {dim3(static_cast<unsigned>((stage.atom_count + S::kRows - 1) / S::kRows)), S::kThreads,
                               S::kReverseBytes};
    launch("reversing atoms", reverse_update_kernel<S>, shape, stream, stage);
}

// Few atoms are spread over the whole GPU; with many, blocks have more rows, which share what is read of the matrices.
// In double precision and at the largest width there are not enough registers for more rows.
template <class Stored, int Width, class Action>
void with_shape(int64_t atom_count, const Action& action) {
    if (sizeof(Stored) == 8 || atom_count <= few_atoms_for_updates()) return action(Shape<Stored, Width, 1>());
    if constexpr (sizeof(Stored) < 8) {
        if (Width == 256 || atom_count <= some_atoms_for_updates()) return action(Shape<Stored, Width, 2>());
        if constexpr (Width < 256) action(Shape<Stored, Width, 4>());
    }
}

}  // namespace

template <class Stored>
void update_atoms(int width, const AtomStage<Stored>& stage, cudaStream_t stream) {
    if (stage.atom_count == 0) return;
    if constexpr (sizeof(Stored) < 8)
        if (runs_in_clusters(width, stage.atom_count)) return update_atoms_in_clusters(stage, stream);
    with_width(width, [&](auto F) {
        with_shape<Stored, F>(stage.atom_count, [&](auto shape) { launch_update<decltype(shape)>(stage, stream); });
    });
}
template <class Stored>
void reverse_atoms(int width, const AtomReverse<Stored>& stage, cudaStream_t stream) {
    if (stage.atom_count == 0) return;
    if constexpr (sizeof(Stored) < 8)
        if (runs_in_clusters(width, stage.atom_count)) return reverse_atoms_in_clusters(stage, stream);
    with_width(width, [&](auto F) {
        with_shape<Stored, F>(stage.atom_count, [&](auto shape) { launch_reverse<decltype(shape)>(stage, stream); });
    });
}

template void update_atoms<float>(int, const AtomStage<float>&, cudaStream_t);
template void update_atoms<__half>(int, const AtomStage<__half>&, cudaStream_t);
template void update_atoms<double>(int, const AtomStage<double>&, cudaStream_t);
template void reverse_atoms<float>(int, const AtomReverse<float>&, cudaStream_t);
template void reverse_atoms<__half>(int, const AtomReverse<__half>&, cudaStream_t);
template void reverse_atoms<double>(int, const AtomReverse<double>&, cudaStream_t);

}  // namespace mlff::painn::gpu
