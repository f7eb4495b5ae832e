// SPDX-License-Identifier: MIT
#include "painn/gpu/atom_stages.h"

#include <algorithm>

#include "gpu/engine/four.h"
#include "gpu/engine/product_lane.h"
#include "gpu/engine/warp.h"
#include "gpu/runtime/cuda_check.h"
#include "painn/gpu/activation.h"
#include "painn/gpu/block_atoms.h"
#include "painn/gpu/cluster_stages.h"
#include "painn/gpu/messages.h"
#include "painn/gpu/sizes.h"
#include "painn/gpu/widths.h"

namespace mlff::painn::gpu {
namespace {

using namespace mlff::gpu;

// A thread block has kRows atoms. Warp w has channels 16 w ... 16 w + 15 through all stages. Of these, lane 4 g + q has
// channels 4 q ... 4 q + 3 of the atoms 16 t + 8 h + g: its cells [t][h].
template <class RealIn, int WidthIn, int RowTilesIn>
struct Shape {
    using Real = RealIn;
    static constexpr int kWidth = WidthIn, kRowTiles = RowTilesIn;
    static constexpr int kRows = kProductRows * kRowTiles;
    static constexpr int kThreads = 32 * (kWidth / 16);
    // Blocks per multiprocessor, so that there is work while one block waits for a matrix.
    static constexpr int kReverseBlocks = kRowTiles > 1 && kThreads <= 256 ? 512 / kThreads : 1;
    // Rows in shared memory are shifted by half of all banks, so that lanes of two rows use all banks.
    static constexpr int kPad = kStep<Real>;
    static constexpr int kPitch = kWidth + kPad, kWidePitch = 2 * kWidth + kPad, kWidestPitch = 3 * kWidth + kPad;
    static constexpr size_t kForwardBytes = sizeof(Real) * kRows * (3 * kPitch + kWidePitch);
    static constexpr size_t kReverseBytes = sizeof(Real) * kRows * (kWidestPitch + kPitch);
};

// Numbers of a lane: 4 adjacent columns of each of its atoms.
template <class S>
struct Cells {
    typename S::Real of[S::kRowTiles][2][4];
};

// Where the cells of a thread are.
template <class S>
struct CellPlace : ProductLane, BlockAtoms {
    int column;

    __device__ explicit CellPlace(int64_t atoms)
        : BlockAtoms{blockIdx.x * int64_t{S::kRows}, atoms}, column(16 * warp + 4 * q) {}

    __device__ int row(int t, int h) const { return kProductRows * t + 8 * h + g; }
};

// Calls action(t, h) for all rows of a lane.
template <class S, class Action>
__device__ __forceinline__ void for_rows(const Action& action) {
#pragma unroll
    for (int t = 0; t < S::kRowTiles; ++t)
#pragma unroll
        for (int h = 0; h < 2; ++h) action(t, h);
}

// Copies the first `Columns` numbers of each atom to shared memory. Atoms are `stride` numbers apart.
template <class S, int Columns>
__device__ __forceinline__ void copy_rows(const CellPlace<S>& place, const typename S::Real* from, int64_t stride,
                                          typename S::Real* to, int pitch) {
    using Real = typename S::Real;
    constexpr int kPerRow = Columns / Pack<Real>::kCount;
    for (int i = static_cast<int>(threadIdx.x); i < S::kRows * kPerRow; i += S::kThreads) {
        const int row = i / kPerRow, at = i % kPerRow * Pack<Real>::kCount;
        *reinterpret_cast<Pack<Real>*>(to + row * pitch + at) =
            *reinterpret_cast<const Pack<Real>*>(from + place.clamped_atom(row) * stride + at);
    }
}

// result[group] = rows times matrix, for columns place.column + group * Width of a matrix that has `Columns` columns.
// `rows` [kRows][pitch] is shared memory.
template <class S, int Depth, int Columns, int Groups>
__device__ __forceinline__ void multiply(const CellPlace<S>& place, const typename S::Real* rows, int pitch,
                                         const typename S::Real* matrix, Cells<S> (&result)[Groups]) {
    using Real = typename S::Real;
    using Product = TensorProduct<Real>;
    constexpr int kSteps = Depth / kStep<Real>, kPackSize = Pack<Real>::kCount;
    constexpr int kWantedAhead = S::kRowTiles > 1 || Groups > 1 || S::kWidth > 128 ? 2 : 4,
                  kAhead = kSteps % kWantedAhead == 0 ? kWantedAhead
                           : kSteps % 2 == 0          ? 2
                                                      : 1;
    static_assert(Depth % kStep<Real> == 0 && kSteps % kAhead == 0);
    const Real* own_matrix = matrix + 16 * place.warp * kStep<Real> + place.lane * kPackSize;
    Pack<Real> ahead[kAhead][Groups][2];
    const auto fetch = [&](int step, Pack<Real>(&to)[Groups][2]) {
#pragma unroll
        for (int group = 0; group < Groups; ++group)
#pragma unroll
            for (int tile = 0; tile < 2; ++tile)
                to[group][tile] = load_pack(own_matrix + (int64_t{step} * Columns + group * S::kWidth) * kStep<Real> +
                                            tile * (32 * kPackSize));
    };
#pragma unroll
    for (int a = 0; a < kAhead; ++a) fetch(a, ahead[a]);
    Real sum[Groups][S::kRowTiles][2][4] = {};
    const Real* own_rows = rows + place.g * pitch + place.q * kPackSize;
#pragma unroll 1
    for (int first = 0; first < kSteps; first += kAhead) {
#pragma unroll
        for (int a = 0; a < kAhead; ++a) {
            typename Product::Operand columns[Groups][2];
#pragma unroll
            for (int group = 0; group < Groups; ++group)
#pragma unroll
                for (int tile = 0; tile < 2; ++tile) columns[group][tile] = Product::split(ahead[a][group][tile]);
            if (first + kAhead < kSteps) fetch(first + kAhead + a, ahead[a]);
#pragma unroll
            for (int t = 0; t < S::kRowTiles; ++t) {
                const Real* at = own_rows + kProductRows * t * pitch + (first + a) * kStep<Real>;
                const auto top = Product::split(*reinterpret_cast<const Pack<Real>*>(at));
                const auto bottom = Product::split(*reinterpret_cast<const Pack<Real>*>(at + 8 * pitch));
#pragma unroll
                for (int group = 0; group < Groups; ++group) {
                    if constexpr (S::kRowTiles * Groups == 1)
                        Product::add_abreast(top, bottom, columns[group], sum[group][t]);
                    else
                        Product::add(top, bottom, columns[group], sum[group][t]);
                }
            }
        }
    }
#pragma unroll
    for (int group = 0; group < Groups; ++group)
        for_rows<S>([&](int t, int h) {
#pragma unroll
            for (int i = 0; i < 4; ++i) result[group].of[t][h][i] = sum[group][t][i / 2][2 * h + i % 2];
        });
}

// Writes silu(product + bias) to `to` in shared memory, and the value before the activation to `kept`.
template <class S, int Depth>
__device__ __forceinline__ void hidden_layer(const CellPlace<S>& place, const MapView<typename S::Real>& map,
                                             const typename S::Real* rows, int pitch, typename S::Real* kept,
                                             typename S::Real* to) {
    using Real = typename S::Real;
    Cells<S> hidden[1];
    multiply<S, Depth, S::kWidth>(place, rows, pitch, map.matrix, hidden);
    const Four<Real> bias = load_four(map.bias + place.column);
    for_rows<S>([&](int t, int h) {
        const int row = place.row(t, h);
        Real(&cell)[4] = hidden[0].of[t][h];
#pragma unroll
        for (int i = 0; i < 4; ++i) cell[i] += bias.of[i];
        if (place.has(row)) store_four(kept + (place.first_atom + row) * S::kWidth + place.column, cell);
#pragma unroll
        for (int i = 0; i < 4; ++i) cell[i] = silu(cell[i]);
        store_four(to + row * S::kPitch + place.column, cell);
    });
}

// The message network of the next block. `scalars` [row][kWidePitch] is shared memory, `hidden` scratch memory there.
template <class S>
__device__ __forceinline__ void send(const CellPlace<S>& place, const AtomStage<typename S::Real>& stage,
                                     const typename S::Real* scalars, typename S::Real* hidden) {
    using Real = typename S::Real;
    constexpr int F = S::kWidth;
    hidden_layer<S, F>(place, stage.message.hidden, scalars, S::kWidePitch, stage.kept_message.hidden, hidden);
    __syncthreads();
    Cells<S> phi[3];
    multiply<S, F, 3 * F>(place, hidden, S::kPitch, stage.message.output.matrix, phi);
    Four<Real> bias[3];
#pragma unroll
    for (int part = 0; part < 3; ++part) bias[part] = load_four(stage.message.output.bias + part * F + place.column);
    for_rows<S>([&](int t, int h) {
        const int row = place.row(t, h);
        if (!place.has(row)) return;
        const int64_t atom = place.first_atom + row;
#pragma unroll
        for (int part = 0; part < 3; ++part)
#pragma unroll
            for (int i = 0; i < 4; ++i) phi[part].of[t][h][i] += bias[part].of[i];
        Real* sent = stage.sent + atom * (kSentRows * F) + place.column;
        store_four(sent, phi[0].of[t][h]);
        store_four(sent + F, phi[2].of[t][h]);
        store_four(stage.kept_message.phi_v + atom * F + place.column, phi[1].of[t][h]);
#pragma unroll
        for (int k = 0; k < 3; ++k) {
            // This thread has written these numbers itself.
            const Four<Real> vector = load_four(stage.new_vectors + (3 * atom + k) * F + place.column);
            Real product[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) product[i] = phi[1].of[t][h][i] * vector.of[i];
            store_four(sent + (2 + k) * F, product);
        }
    });
}

// Computes energies from `scalars` [row][kWidePitch] in shared memory. `partial` is scratch memory there,
// [kRows][F / 32].
template <class S>
__device__ __forceinline__ void read_out(const CellPlace<S>& place, const ReadoutView<typename S::Real>& readout,
                                         const typename S::Real* scalars, double* partial) {
    using Real = typename S::Real;
    constexpr int F = S::kWidth, kHalf = F / 2, kParts = kHalf / 16;
    if (place.warp < kParts) {
        Cells<S> hidden[1];
        multiply<S, F, kHalf>(place, scalars, S::kWidePitch, readout.hidden.matrix, hidden);
        const Four<Real> bias = load_four(readout.hidden.bias + place.column);
        for_rows<S>([&](int t, int h) {
            const int row = place.row(t, h);
            Real(&cell)[4] = hidden[0].of[t][h];
            double sum = 0;
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                cell[i] += bias.of[i];
                sum += static_cast<double>(silu(cell[i])) * readout.output[place.column + i];
            }
            if (place.has(row)) store_four(readout.kept_hidden + (place.first_atom + row) * kHalf + place.column, cell);
            sum += __shfl_xor_sync(kAllLanes, sum, 1);
            sum += __shfl_xor_sync(kAllLanes, sum, 2);
            if (place.q == 0) partial[row * kParts + place.warp] = sum;
        });
    }
    __syncthreads();
    for (int row = static_cast<int>(threadIdx.x); row < S::kRows; row += S::kThreads) {
        if (!place.has(row)) continue;
        const int64_t atom = place.first_atom + row;
        const int32_t element = readout.elements[atom];
        double sum = readout.output_bias;
        for (int part = 0; part < kParts; ++part) sum += partial[row * kParts + part];
        readout.energies[atom] =
            readout.element_energies[element] + readout.scales[element] * sum + readout.energies[atom];
    }
}

template <class S>
__global__ void __launch_bounds__(S::kThreads)
    update_kernel(const __grid_constant__ AtomStage<typename S::Real> stage) {
    mlff::gpu::await_predecessor();
    using Real = typename S::Real;
    constexpr int F = S::kWidth;
    const CellPlace<S> place(stage.atom_count);
    Real* const vectors = reinterpret_cast<Real*>(launched_shared_memory());  // [3][kRows][kPitch]
    Real* const scalars = vectors + 3 * S::kRows * S::kPitch;                 // [kRows][kWidePitch]: s, n
    Real* const hidden = vectors;  // [kRows][kPitch], after the vectors have been read
#pragma unroll
    for (int k = 0; k < 3; ++k)
        copy_rows<S, F>(place, stage.vectors + k * F, 3 * F, vectors + k * S::kRows * S::kPitch, S::kPitch);
    copy_rows<S, F>(place, stage.scalars, F, scalars, S::kWidePitch);
    __syncthreads();

    Cells<S> norm = {};
    for (int k = 0; k < 3; ++k) {
        Cells<S> mixed[2];
        multiply<S, F, 2 * F>(place, vectors + k * S::kRows * S::kPitch, S::kPitch, stage.mix.matrix, mixed);
        for_rows<S>([&](int t, int h) {
            const int row = place.row(t, h);
#pragma unroll
            for (int i = 0; i < 4; ++i) norm.of[t][h][i] += mixed[1].of[t][h][i] * mixed[1].of[t][h][i];
            if (!place.has(row)) return;
            Real* kept = stage.kept.mixed + (place.first_atom + row) * (6 * F) + k * F + place.column;
            store_four(kept, mixed[0].of[t][h]);
            store_four(kept + 3 * F, mixed[1].of[t][h]);
        });
    }
    for_rows<S>([&](int t, int h) {
        Real length[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) length[i] = sqrt(norm.of[t][h][i] + static_cast<Real>(kNormFloor));
        store_four(scalars + place.row(t, h) * S::kWidePitch + F + place.column, length);
    });
    __syncthreads();  // norms are written, and vectors are no longer needed
    hidden_layer<S, 2 * F>(place, stage.update.hidden, scalars, S::kWidePitch, stage.kept.hidden, hidden);
    __syncthreads();  // scalars and norms are no longer needed, except for a lane's own cells

    Cells<S> gates[3];
    multiply<S, F, 3 * F>(place, hidden, S::kPitch, stage.update.output.matrix, gates);
    Four<Real> bias[3];
#pragma unroll
    for (int part = 0; part < 3; ++part) bias[part] = load_four(stage.update.output.bias + part * F + place.column);
    for_rows<S>([&](int t, int h) {
        const int row = place.row(t, h);
        const int64_t atom = place.first_atom + row;
#pragma unroll
        for (int part = 0; part < 3; ++part)
#pragma unroll
            for (int i = 0; i < 4; ++i) gates[part].of[t][h][i] += bias[part].of[i];
        Real dot[4] = {};  // (U v)(V v), from numbers that this thread has stored itself
        if (place.has(row))
#pragma unroll
            for (int k = 0; k < 3; ++k) {
                const Four<Real> u = load_four(stage.kept.mixed + (6 * atom + k) * F + place.column),
                                 v = load_four(stage.kept.mixed + (6 * atom + 3 + k) * F + place.column);
#pragma unroll
                for (int i = 0; i < 4; ++i) dot[i] += u.of[i] * v.of[i];
                if (stage.is_last) continue;
                const Four<Real> before = load_four(stage.vectors + (3 * atom + k) * F + place.column);
                Real sum[4];
#pragma unroll
                for (int i = 0; i < 4; ++i) sum[i] = before.of[i] + gates[2].of[t][h][i] * u.of[i];
                store_four(stage.new_vectors + (3 * atom + k) * F + place.column, sum);
            }
        Real* own_scalars = scalars + row * S::kWidePitch + place.column;
        const Four<Real> before = load_four(own_scalars);
        Real after[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) after[i] = before.of[i] + (gates[0].of[t][h][i] + gates[1].of[t][h][i] * dot[i]);
        store_four(own_scalars, after);
        if (!place.has(row)) return;
        store_four(stage.kept.gates + atom * (2 * F) + place.column, gates[1].of[t][h]);
        if (!stage.is_last) {
            store_four(stage.kept.gates + atom * (2 * F) + F + place.column, gates[2].of[t][h]);
            store_four(stage.new_scalars + atom * F + place.column, after);
        } else if (stage.readout.descriptors) {
#pragma unroll
            for (int i = 0; i < 4; ++i)
                stage.readout.descriptors[atom * F + place.column + i] = static_cast<double>(after[i]);
        }
    });
    __syncthreads();  // new scalars are written, and `hidden` is no longer needed
    if (stage.is_last)
        read_out(place, stage.readout, scalars, reinterpret_cast<double*>(hidden));
    else
        send(place, stage, scalars, hidden);
}

// The gradient of the scalars after the last block. `hidden` is scratch memory, shared, [kRows][kPitch].
template <class S>
__device__ __forceinline__ void reverse_readout(const CellPlace<S>& place, const ReadoutView<typename S::Real>& readout,
                                                typename S::Real* hidden, Cells<S> (&gradient)[1]) {
    using Real = typename S::Real;
    constexpr int F = S::kWidth, kHalf = F / 2;
    for (int i = static_cast<int>(threadIdx.x); i < S::kRows * kHalf; i += S::kThreads) {
        const int row = i / kHalf, column = i % kHalf;
        const int64_t atom = place.clamped_atom(row);
        hidden[row * S::kPitch + column] =
            static_cast<Real>(readout.scales[readout.elements[atom]] * readout.output[column]) *
            silu_slope(readout.kept_hidden[atom * kHalf + column]);
    }
    __syncthreads();
    multiply<S, kHalf, F>(place, hidden, S::kPitch, readout.hidden.transposed, gradient);
}

// hidden[row][column], in shared memory, = (gradients times the transposed output matrix) times the slope of the
// activation.
template <class S, int Depth>
__device__ __forceinline__ void reverse_output(const CellPlace<S>& place, const MapView<typename S::Real>& output,
                                               const typename S::Real* kept_hidden, const typename S::Real* rows,
                                               typename S::Real* hidden) {
    using Real = typename S::Real;
    Cells<S> gradient[1];
    multiply<S, Depth, S::kWidth>(place, rows, S::kWidestPitch, output.transposed, gradient);
    for_rows<S>([&](int t, int h) {
        const int row = place.row(t, h);
        const Four<Real> before = load_four(kept_hidden + place.clamped_atom(row) * S::kWidth + place.column);
        Real(&cell)[4] = gradient[0].of[t][h];
#pragma unroll
        for (int i = 0; i < 4; ++i) cell[i] *= silu_slope(before.of[i]);
        store_four(hidden + row * S::kPitch + place.column, cell);
    });
}

template <class S>
__global__ void __launch_bounds__(S::kThreads, S::kReverseBlocks)
    reverse_update_kernel(const __grid_constant__ AtomReverse<typename S::Real> stage) {
    mlff::gpu::await_predecessor();
    using Real = typename S::Real;
    constexpr int F = S::kWidth;
    const CellPlace<S> place(stage.atom_count);
    // `rows` is [kRows][kWidestPitch], in the end [kRows][kWidePitch]; `hidden` is [kRows][kPitch].
    Real* const rows = reinterpret_cast<Real*>(launched_shared_memory());
    Real* const hidden = rows + S::kRows * S::kWidestPitch;

    // The gradient of the scalars after this block.
    Cells<S> scalars[1];
    if (stage.is_last) {
        reverse_readout(place, stage.readout, hidden, scalars);
    } else {
        copy_rows<S, 3 * F>(place, stage.phi_gradient, 3 * F, rows, S::kWidestPitch);
        __syncthreads();
        reverse_output<S, 3 * F>(place, stage.message.output, stage.kept_message.hidden, rows, hidden);
        __syncthreads();
        multiply<S, F, F>(place, hidden, S::kPitch, stage.message.hidden.transposed, scalars);
        for_rows<S>([&](int t, int h) {
            const Four<Real> more = load_four(stage.gradient_after +
                                              place.clamped_atom(place.row(t, h)) * (kGradientRows * F) + place.column);
#pragma unroll
            for (int i = 0; i < 4; ++i) scalars[0].of[t][h][i] += more.of[i];
        });
    }

    // Gradients of the three gates a_ss, a_sv, a_vv. All threads have read `rows` before the last barrier.
    for_rows<S>([&](int t, int h) {
        const int row = place.row(t, h);
        const int64_t atom = place.clamped_atom(row);
        Real dot[4] = {}, along[4] = {};
#pragma unroll
        for (int k = 0; k < 3; ++k) {
            const Four<Real> u = load_four(stage.kept.mixed + (6 * atom + k) * F + place.column),
                             v = load_four(stage.kept.mixed + (6 * atom + 3 + k) * F + place.column);
#pragma unroll
            for (int i = 0; i < 4; ++i) dot[i] += u.of[i] * v.of[i];
            if (stage.is_last) continue;
            const Four<Real> gradient = load_four(stage.vectors_gradient + (3 * atom + k) * F + place.column);
#pragma unroll
            for (int i = 0; i < 4; ++i) along[i] += u.of[i] * gradient.of[i];
        }
        Real* to = rows + row * S::kWidestPitch + place.column;
        store_four(to, scalars[0].of[t][h]);
#pragma unroll
        for (int i = 0; i < 4; ++i) dot[i] *= scalars[0].of[t][h][i];
        store_four(to + F, dot);
        store_four(to + 2 * F, along);
    });
    __syncthreads();
    if (stage.is_last)
        reverse_output<S, 2 * F>(place, stage.update.output, stage.kept.hidden, rows, hidden);  // without a_vv
    else
        reverse_output<S, 3 * F>(place, stage.update.output, stage.kept.hidden, rows, hidden);
    __syncthreads();
    Cells<S> inputs[2];  // s, n
    multiply<S, F, 2 * F>(place, hidden, S::kPitch, stage.update.hidden.transposed, inputs);
    // inputs[1] becomes (dE/dn) / n.
    for_rows<S>([&](int t, int h) {
        const int64_t atom = place.clamped_atom(place.row(t, h));
        Real norm[4] = {};
#pragma unroll
        for (int k = 0; k < 3; ++k) {
            const Four<Real> v = load_four(stage.kept.mixed + (6 * atom + 3 + k) * F + place.column);
#pragma unroll
            for (int i = 0; i < 4; ++i) norm[i] += v.of[i] * v.of[i];
        }
        Real sum[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            inputs[1].of[t][h][i] /= sqrt(norm[i] + static_cast<Real>(kNormFloor));
            sum[i] = scalars[0].of[t][h][i] + inputs[0].of[t][h][i];
        }
        if (place.has(place.row(t, h))) store_four(stage.gradient + atom * (kGradientRows * F) + place.column, sum);
    });
    for (int k = 0; k < 3; ++k) {
        // All threads have read `rows` before the last barrier.
        for_rows<S>([&](int t, int h) {
            const int row = place.row(t, h);
            const int64_t atom = place.clamped_atom(row);
            const Four<Real> u = load_four(stage.kept.mixed + (6 * atom + k) * F + place.column),
                             v = load_four(stage.kept.mixed + (6 * atom + 3 + k) * F + place.column);
            const Four<Real> gate = load_four(stage.kept.gates + atom * (2 * F) + place.column);
            Four<Real> vector_gate = {}, gradient = {};
            if (!stage.is_last) {
                vector_gate = load_four(stage.kept.gates + atom * (2 * F) + F + place.column);
                gradient = load_four(stage.vectors_gradient + (3 * atom + k) * F + place.column);
            }
            Real u_gradient[4], v_gradient[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const Real both = gate.of[i] * scalars[0].of[t][h][i];
                u_gradient[i] = vector_gate.of[i] * gradient.of[i] + both * v.of[i];
                v_gradient[i] = both * u.of[i] + inputs[1].of[t][h][i] * v.of[i];
            }
            Real* to = rows + row * S::kWidePitch + place.column;
            store_four(to, u_gradient);
            store_four(to + F, v_gradient);
        });
        __syncthreads();
        Cells<S> vector[1];
        multiply<S, 2 * F, F>(place, rows, S::kWidePitch, stage.mix.transposed, vector);
        for_rows<S>([&](int t, int h) {
            const int row = place.row(t, h);
            if (!place.has(row)) return;
            const int64_t atom = place.first_atom + row;
            if (!stage.is_last) {
                const Four<Real> gradient = load_four(stage.vectors_gradient + (3 * atom + k) * F + place.column);
#pragma unroll
                for (int i = 0; i < 4; ++i) vector[0].of[t][h][i] += gradient.of[i];
            }
            store_four(stage.gradient + (kGradientRows * atom + 1 + k) * F + place.column, vector[0].of[t][h]);
        });
        __syncthreads();
    }
}

template <class S>
void launch_update(const AtomStage<typename S::Real>& stage, cudaStream_t stream) {
    const LaunchShape shape = {dim3(static_cast<unsigned>((stage.atom_count + S::kRows - 1) / S::kRows)), S::kThreads,
                               S::kForwardBytes};
    launch("updating atoms", update_kernel<S>, shape, stream, stage);
}
template <class S>
void launch_reverse(const AtomReverse<typename S::Real>& stage, cudaStream_t stream) {
    const LaunchShape shape = {dim3(static_cast<unsigned>((stage.atom_count + S::kRows - 1) / S::kRows)), S::kThreads,
                               S::kReverseBytes};
    launch("reversing atoms", reverse_update_kernel<S>, shape, stream, stage);
}

// Few atoms are spread over the whole GPU; with many, blocks have more rows, which share what is read of the matrices.
// In double precision and at the largest width there are not enough registers for more rows. In the reverse, two blocks
// that wait in turn are faster than one with more rows.
template <class Real, int Width>
void update_atoms_of_width(const AtomStage<Real>& stage, cudaStream_t stream) {
    if (sizeof(Real) == 8 || stage.atom_count <= few_atoms_for_updates())
        return launch_update<Shape<Real, Width, 1>>(stage, stream);
    if constexpr (sizeof(Real) == 4) {
        if (Width == 256 || stage.atom_count <= some_atoms_for_updates())
            return launch_update<Shape<Real, Width, 2>>(stage, stream);
        if constexpr (Width < 256) launch_update<Shape<Real, Width, 4>>(stage, stream);
    }
}
template <class Real, int Width>
void reverse_atoms_of_width(const AtomReverse<Real>& stage, cudaStream_t stream) {
    if (sizeof(Real) == 8 || stage.atom_count <= few_atoms_for_updates())
        return launch_reverse<Shape<Real, Width, 1>>(stage, stream);
    if constexpr (sizeof(Real) == 4) launch_reverse<Shape<Real, Width, 2>>(stage, stream);
}

}  // namespace

template <class Real>
void update_atoms(int width, const AtomStage<Real>& stage, cudaStream_t stream) {
    if (stage.atom_count == 0) return;
    if constexpr (sizeof(Real) == 4)
        if (runs_in_clusters(width, stage.atom_count)) return update_atoms_in_clusters(stage, stream);
    with_width(width, [&](auto F) { update_atoms_of_width<Real, F>(stage, stream); });
}
template <class Real>
void reverse_atoms(int width, const AtomReverse<Real>& stage, cudaStream_t stream) {
    if (stage.atom_count == 0) return;
    if constexpr (sizeof(Real) == 4)
        if (runs_in_clusters(width, stage.atom_count)) return reverse_atoms_in_clusters(stage, stream);
    with_width(width, [&](auto F) { reverse_atoms_of_width<Real, F>(stage, stream); });
}

template void update_atoms<float>(int, const AtomStage<float>&, cudaStream_t);
template void update_atoms<double>(int, const AtomStage<double>&, cudaStream_t);
template void reverse_atoms<float>(int, const AtomReverse<float>&, cudaStream_t);
template void reverse_atoms<double>(int, const AtomReverse<double>&, cudaStream_t);

}  // namespace mlff::painn::gpu
