// SPDX-License-Identifier: MIT
// With few atoms, the time of a stage is that of reading its matrices, 0.7 MB, on the few multiprocessors that have
// atoms. Here a cluster of 8 blocks has 16 atoms, and each block an eighth of the columns of every matrix.
//
// The 8 warps of a block divide the depth. Warp w multiplies channels 16 w ... 16 w + 15 of the rows, which block w of
// the cluster has computed, by its part of the matrix; then the products of the warps are added. A warp loads its part
// of the matrices into registers before the previous kernel has finished.
//
// `fast` has the same products, in three parts: here they are no limit. It only stores what neighbours gather as
// halves.
//
// So a cluster reads nothing of a matrix twice, and each of the 4 or 5 layers costs one cluster barrier and one round
// of products.
#include "painn/gpu/cluster_stages.h"

#include "gpu/engine/product_lane.h"
#include "gpu/runtime/cluster.h"
#include "painn/gpu/activation.h"
#include "painn/gpu/block_atoms.h"
#include "painn/gpu/messages.h"
#include "painn/gpu/sizes.h"

namespace mlff::painn::gpu {
namespace {

using namespace mlff::gpu;

constexpr int F = 128, kClusterSize = 8, kWarpsOfBlock = 8, kThreads = 32 * kWarpsOfBlock;
constexpr int kRows = kProductRows, kChannels = F / kClusterSize;  // of a block
constexpr int kCells = kRows * kChannels;
constexpr int kMostGroups = 6;
static_assert(kCells == kThreads && kChannels == kStep<float> && kWarpsOfBlock == kClusterSize);

using Product = TensorProduct<float>;
using Group = float[kCells];  // [row][channel of the block]

// Shared memory of a block. Groups that other blocks read are written only once in a kernel.
struct Shared {
    Group partial[kWarpsOfBlock][kMostGroups];
    Group exchanged[11];
    double energies[kRows];
};

// The place of a thread in its cluster. It has one cell: an atom and a channel.
struct ClusterPlace : ProductLane, BlockAtoms {
    int rank;
    int row, channel;
    int64_t atom;
    bool has_atom;

    __device__ explicit ClusterPlace(int64_t atoms)
        : BlockAtoms{blockIdx.x / kClusterSize * int64_t{kRows}, atoms},
          rank(rank_in_cluster()),
          row(static_cast<int>(threadIdx.x) / kChannels),
          channel(kChannels * rank + static_cast<int>(threadIdx.x) % kChannels),
          atom(clamped_atom(row)),
          has_atom(has(row)) {}
};

__device__ __forceinline__ Shared& shared_memory_of_block() {
    return *reinterpret_cast<Shared*>(launched_shared_memory());
}

// A warp's part of a packed matrix with depth Parts F and Groups F columns: one step of each part, and the block's
// columns of each group.
template <int Parts, int Groups>
struct OwnWeights {
    Pack<float> of[Parts][Groups][2];

    __device__ __forceinline__ OwnWeights(const ClusterPlace& place, const float* matrix) {
        const float* own = matrix + kChannels * place.rank * kStep<float> + place.lane * Pack<float>::kCount;
#pragma unroll
        for (int part = 0; part < Parts; ++part)
#pragma unroll
            for (int group = 0; group < Groups; ++group)
#pragma unroll
                for (int tile = 0; tile < 2; ++tile)
                    of[part][group][tile] =
                        load_pack(own + ((part * kWarpsOfBlock + place.warp) * Groups * F + group * F) * kStep<float> +
                                  tile * (32 * Pack<float>::kCount));
    }
};
// The same for a small matrix with `steps` steps of depth and `columns` columns. A block or warp may have no part.
struct OwnSmallWeights {
    Pack<float> of[2] = {};
    bool is_there;

    __device__ __forceinline__ OwnSmallWeights(const ClusterPlace& place, const float* matrix, int steps, int columns)
        : is_there(place.warp < steps && kChannels * place.rank < columns) {
        if (!is_there) return;
        const float* own =
            matrix + (kChannels * place.rank + place.warp * columns) * kStep<float> + place.lane * Pack<float>::kCount;
#pragma unroll
        for (int tile = 0; tile < 2; ++tile) of[tile] = load_pack(own + tile * (32 * Pack<float>::kCount));
    }
};

// A lane's part of the rows of a warp's step.
struct Rows {
    Pack<float> top, bottom;
};
// From device memory, [atom][stride]. `from` points to the first of the F channels.
__device__ __forceinline__ Rows rows_of_atoms(const ClusterPlace& place, const float* from, int64_t stride) {
    const float* own = from + kChannels * place.warp + 4 * place.q;
    return {load_pack(own + place.clamped_atom(place.g) * stride),
            load_pack(own + place.clamped_atom(place.g + 8) * stride)};
}
__device__ __forceinline__ Pack<float> pack_from_peer(const float* own, int rank) {
    const uint4 bytes = load_from_peer(own, rank);
    return {{__uint_as_float(bytes.x), __uint_as_float(bytes.y), __uint_as_float(bytes.z), __uint_as_float(bytes.w)}};
}
// From `group` of the block of the cluster whose rank is this warp's number.
__device__ __forceinline__ Rows rows_of_peer(const ClusterPlace& place, const Group& group) {
    return {pack_from_peer(group + place.g * kChannels + 4 * place.q, place.warp),
            pack_from_peer(group + (place.g + 8) * kChannels + 4 * place.q, place.warp)};
}

using Sum = float[2][4];
__device__ __forceinline__ void add_product(const Rows& rows, const Pack<float> (&weights)[2], Sum& sum) {
    const Product::Operand columns[2] = {Product::split(weights[0]), Product::split(weights[1])};
    Product::add_abreast(Product::split(rows.top), Product::split(rows.bottom), columns, sum);
}
__device__ __forceinline__ void store_partial(const ClusterPlace& place, const Sum& sum, Group& group) {
    *reinterpret_cast<Pack<float>*>(group + place.g * kChannels +
                                    4 * place.q) = {{sum[0][0], sum[0][1], sum[1][0], sum[1][1]}};
    *reinterpret_cast<Pack<float>*>(group + (place.g + 8) * kChannels +
                                    4 * place.q) = {{sum[0][2], sum[0][3], sum[1][2], sum[1][3]}};
}
// Sums the products of all warps for the cell of this thread. There must be a cluster barrier between two calls.
template <int Groups>
__device__ __forceinline__ void add_up(const Shared& shared, float (&cells)[Groups]) {
    __syncthreads();
#pragma unroll
    for (int group = 0; group < Groups; ++group) {
        cells[group] = 0;
#pragma unroll
        for (int warp = 0; warp < kWarpsOfBlock; ++warp) cells[group] += shared.partial[warp][group][threadIdx.x];
    }
}
// cells[group] = rows times matrix
template <int Parts, int Groups>
__device__ __forceinline__ void multiply(const ClusterPlace& place, const Rows (&rows)[Parts],
                                         const OwnWeights<Parts, Groups>& weights, Shared& shared,
                                         float (&cells)[Groups]) {
#pragma unroll
    for (int group = 0; group < Groups; ++group) {
        Sum sum = {};
#pragma unroll
        for (int part = 0; part < Parts; ++part) add_product(rows[part], weights.of[part][group], sum);
        store_partial(place, sum, shared.partial[place.warp][group]);
    }
    add_up(shared, cells);
}
__device__ __forceinline__ void multiply(const ClusterPlace& place, const Rows& rows, const OwnSmallWeights& weights,
                                         Shared& shared, float (&cells)[1]) {
    Sum sum = {};
    if (weights.is_there) add_product(rows, weights.of, sum);
    store_partial(place, sum, shared.partial[place.warp][0]);
    add_up(shared, cells);
}

// Weights of what follows the update of a block: the message network of the next block, or the readout.
template <bool IsLast>
struct NextWeights {
    OwnWeights<1, 1> hidden;
    OwnWeights<1, 3> output;
    float hidden_bias, output_bias[3];

    template <class Stored>
    __device__ __forceinline__ NextWeights(const ClusterPlace& place, const AtomStage<Stored>& stage)
        : hidden(place, stage.message.hidden.matrix),
          output(place, stage.message.output.matrix),
          hidden_bias(stage.message.hidden.bias[place.channel]) {
#pragma unroll
        for (int part = 0; part < 3; ++part) output_bias[part] = stage.message.output.bias[part * F + place.channel];
    }
};
template <>
struct NextWeights<true> {
    OwnSmallWeights hidden;

    template <class Stored>
    __device__ __forceinline__ NextWeights(const ClusterPlace& place, const AtomStage<Stored>& stage)
        : hidden(place, stage.readout.hidden.matrix, kWarpsOfBlock, F / 2) {}
};

enum Exchanged { kNorms, kHidden, kScalars, kMessageHidden };

// Computes energies from the scalars, which are in the blocks of the cluster.
template <class Stored>
__device__ __forceinline__ void read_out(const ClusterPlace& place, const ReadoutView<Stored>& readout,
                                         const OwnSmallWeights& weights, Shared& shared) {
    constexpr int kHalf = F / 2;
    float hidden[1];
    multiply(place, rows_of_peer(place, shared.exchanged[kScalars]), weights, shared, hidden);
    double sum = 0;
    if (place.channel < kHalf) {
        hidden[0] += readout.hidden.bias[place.channel];
        sum = static_cast<double>(silu(hidden[0])) * readout.output[place.channel];
        if (place.has_atom) readout.kept_hidden[place.atom * kHalf + place.channel] = hidden[0];
    }
#pragma unroll
    for (int distance = 1; distance < kChannels; distance *= 2) sum += __shfl_xor_sync(0xffffffffu, sum, distance);
    if (threadIdx.x % kChannels == 0) shared.energies[place.row] = sum;
    meet_cluster();
    const int pair_of_rows = static_cast<int>(threadIdx.x);
    if (place.rank == 0 && pair_of_rows < kRows / 2) {
        double total[2] = {readout.output_bias, readout.output_bias};
        for (int rank = 0; rank < kHalf / kChannels; ++rank) {
            const uint4 bytes = load_from_peer(shared.energies + 2 * pair_of_rows, rank);
            total[0] += __hiloint2double(static_cast<int>(bytes.y), static_cast<int>(bytes.x));
            total[1] += __hiloint2double(static_cast<int>(bytes.w), static_cast<int>(bytes.z));
        }
        for (int i = 0; i < 2; ++i) {
            const int64_t atom = place.first_atom + 2 * pair_of_rows + i;
            if (atom >= place.atom_count) break;
            const int32_t element = readout.elements[atom];
            readout.energies[atom] =
                readout.element_energies[element] + readout.scales[element] * total[i] + readout.energies[atom];
        }
    }
}

template <class Stored, bool IsLast>
__global__ void __launch_bounds__(kThreads, 1) update_kernel(const __grid_constant__ AtomStage<Stored> stage) {
    const ClusterPlace place(stage.atom_count);
    Shared& shared = shared_memory_of_block();
    const OwnWeights<1, 2> mix(place, stage.mix.matrix);
    const OwnWeights<2, 1> update_hidden(place, stage.update.hidden.matrix);
    const OwnWeights<1, 3> update_output(place, stage.update.output.matrix);
    const NextWeights<IsLast> next(place, stage);
    const float hidden_bias = stage.update.hidden.bias[place.channel];
    float output_bias[3];
#pragma unroll
    for (int part = 0; part < 3; ++part) output_bias[part] = stage.update.output.bias[part * F + place.channel];
    await_predecessor();

    const int64_t atom = place.atom, at = atom * F + place.channel;
    const Rows scalar_rows = rows_of_atoms(place, stage.scalars, F);
    Rows vector_rows[3];
#pragma unroll
    for (int k = 0; k < 3; ++k) vector_rows[k] = rows_of_atoms(place, stage.vectors + k * F, 3 * F);
    float u[3], v[3], vectors[3], scalar = stage.scalars[at];
#pragma unroll
    for (int k = 0; k < 3; ++k) vectors[k] = stage.vectors[(3 * atom + k) * F + place.channel];
    {
#pragma unroll
        for (int k = 0; k < 3; ++k) {
#pragma unroll
            for (int group = 0; group < 2; ++group) {
                Sum sum = {};
                add_product(vector_rows[k], mix.of[0][group], sum);
                store_partial(place, sum, shared.partial[place.warp][2 * k + group]);
            }
        }
        float mixed[6];
        add_up(shared, mixed);
#pragma unroll
        for (int k = 0; k < 3; ++k) {
            u[k] = mixed[2 * k];
            v[k] = mixed[2 * k + 1];
        }
    }
    shared.exchanged[kNorms][threadIdx.x] =
        sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2] + static_cast<float>(kNormFloor));
    meet_cluster();
    if (place.has_atom)
#pragma unroll
        for (int k = 0; k < 3; ++k) {
            stage.kept.mixed[(6 * atom + k) * F + place.channel] = u[k];
            stage.kept.mixed[(6 * atom + 3 + k) * F + place.channel] = v[k];
        }

    float hidden[1], gates[3];
    {
        const Rows rows[2] = {scalar_rows, rows_of_peer(place, shared.exchanged[kNorms])};
        multiply(place, rows, update_hidden, shared, hidden);
        hidden[0] += hidden_bias;
        shared.exchanged[kHidden][threadIdx.x] = silu(hidden[0]);
    }
    meet_cluster();
    {
        const Rows rows[1] = {rows_of_peer(place, shared.exchanged[kHidden])};
        multiply(place, rows, update_output, shared, gates);
    }
#pragma unroll
    for (int part = 0; part < 3; ++part) gates[part] += output_bias[part];
    const float dot = u[0] * v[0] + u[1] * v[1] + u[2] * v[2];
    scalar += gates[0] + gates[1] * dot;
    shared.exchanged[kScalars][threadIdx.x] = scalar;
    meet_cluster();
    if (place.has_atom) {
        stage.kept.hidden[at] = hidden[0];
        stage.kept.gates[atom * (2 * F) + place.channel] = gates[1];
    }
    if constexpr (IsLast) {
        if (place.has_atom && stage.readout.descriptors) stage.readout.descriptors[at] = static_cast<double>(scalar);
        read_out(place, stage.readout, next.hidden, shared);
    } else {
#pragma unroll
        for (int k = 0; k < 3; ++k) vectors[k] += gates[2] * u[k];
        if (place.has_atom) {
            stage.kept.gates[atom * (2 * F) + F + place.channel] = gates[2];
            stage.new_scalars[at] = scalar;
#pragma unroll
            for (int k = 0; k < 3; ++k) stage.new_vectors[(3 * atom + k) * F + place.channel] = vectors[k];
        }
        float kept[1], phi[3];
        {
            const Rows rows[1] = {rows_of_peer(place, shared.exchanged[kScalars])};
            multiply(place, rows, next.hidden, shared, kept);
        }
        kept[0] += next.hidden_bias;
        shared.exchanged[kMessageHidden][threadIdx.x] = silu(kept[0]);
        meet_cluster();
        {
            const Rows rows[1] = {rows_of_peer(place, shared.exchanged[kMessageHidden])};
            multiply(place, rows, next.output, shared, phi);
        }
#pragma unroll
        for (int part = 0; part < 3; ++part) phi[part] += next.output_bias[part];
        if (place.has_atom) {
            stage.kept_message.hidden[at] = kept[0];
            stage.kept_message.phi_v[at] = phi[1];
            Stored* sent = stage.sent + atom * (kSentRows * F) + place.channel;
            store_number(sent, phi[0]);
            store_number(sent + F, phi[2]);
#pragma unroll
            for (int k = 0; k < 3; ++k) store_number(sent + (2 + k) * F, phi[1] * vectors[k]);
        }
    }
    meet_cluster();  // no block may exit while another one reads its shared memory
}

enum ExchangedGradients { kReversedHidden, kGates, kUpdateHidden = kGates + 3, kMixedU, kMixedV = kMixedU + 3 };

template <class Stored, bool IsLast>
__global__ void __launch_bounds__(kThreads, 1) reverse_kernel(const __grid_constant__ AtomReverse<Stored> stage) {
    constexpr int kGateParts = IsLast ? 2 : 3;  // the last block has no a_vv
    const ClusterPlace place(stage.atom_count);
    Shared& shared = shared_memory_of_block();
    const OwnWeights<kGateParts, 1> update_output(place, stage.update.output.transposed);
    const OwnWeights<1, 2> update_hidden(place, stage.update.hidden.transposed);
    const OwnWeights<2, 1> mix(place, stage.mix.transposed);
    const int64_t atom = place.atom, at = atom * F + place.channel;

    float scalar, u[3], v[3], vectors[3] = {}, gate, vector_gate = 0, kept_hidden;
    const auto load_kept = [&] {
#pragma unroll
        for (int k = 0; k < 3; ++k) {
            u[k] = stage.kept.mixed[(6 * atom + k) * F + place.channel];
            v[k] = stage.kept.mixed[(6 * atom + 3 + k) * F + place.channel];
            if (!IsLast) vectors[k] = stage.vectors_gradient[(3 * atom + k) * F + place.channel];
        }
        gate = stage.kept.gates[atom * (2 * F) + place.channel];
        if (!IsLast) vector_gate = stage.kept.gates[atom * (2 * F) + F + place.channel];
        kept_hidden = stage.kept.hidden[at];
    };
    float cells[1];
    if constexpr (IsLast) {
        constexpr int kHalf = F / 2;
        const OwnSmallWeights weights(place, stage.readout.hidden.transposed, kHalf / kChannels, F);
        await_predecessor();
        load_kept();
        Rows rows = {};
        if (weights.is_there) {
            rows = rows_of_atoms(place, stage.readout.kept_hidden, kHalf);
            const int64_t atoms[2] = {place.clamped_atom(place.g), place.clamped_atom(place.g + 8)};
            const double scales[2] = {stage.readout.scales[stage.readout.elements[atoms[0]]],
                                      stage.readout.scales[stage.readout.elements[atoms[1]]]};
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const double output = stage.readout.output[kChannels * place.warp + 4 * place.q + i];
                rows.top.of[i] = static_cast<float>(scales[0] * output) * silu_slope(rows.top.of[i]);
                rows.bottom.of[i] = static_cast<float>(scales[1] * output) * silu_slope(rows.bottom.of[i]);
            }
        }
        multiply(place, rows, weights, shared, cells);
        scalar = cells[0];
    } else {
        const OwnWeights<3, 1> message_output(place, stage.message.output.transposed);
        const OwnWeights<1, 1> message_hidden(place, stage.message.hidden.transposed);
        await_predecessor();
        {
            const Rows rows[3] = {rows_of_atoms(place, stage.phi_gradient, 3 * F),
                                  rows_of_atoms(place, stage.phi_gradient + F, 3 * F),
                                  rows_of_atoms(place, stage.phi_gradient + 2 * F, 3 * F)};
            load_kept();
            const float message_kept = stage.kept_message.hidden[at];
            scalar = stage.gradient_after[atom * (kGradientRows * F) + place.channel];
            multiply(place, rows, message_output, shared, cells);
            shared.exchanged[kReversedHidden][threadIdx.x] = cells[0] * silu_slope(message_kept);
        }
        meet_cluster();
        const Rows rows[1] = {rows_of_peer(place, shared.exchanged[kReversedHidden])};
        multiply(place, rows, message_hidden, shared, cells);
        scalar += cells[0];
    }

    // Gradients of the gates a_ss, a_sv, a_vv.
    shared.exchanged[kGates][threadIdx.x] = scalar;
    shared.exchanged[kGates + 1][threadIdx.x] = scalar * (u[0] * v[0] + u[1] * v[1] + u[2] * v[2]);
    if (!IsLast) shared.exchanged[kGates + 2][threadIdx.x] = u[0] * vectors[0] + u[1] * vectors[1] + u[2] * vectors[2];
    meet_cluster();
    {
        Rows rows[kGateParts];
#pragma unroll
        for (int part = 0; part < kGateParts; ++part) rows[part] = rows_of_peer(place, shared.exchanged[kGates + part]);
        multiply(place, rows, update_output, shared, cells);
        shared.exchanged[kUpdateHidden][threadIdx.x] = cells[0] * silu_slope(kept_hidden);
    }
    meet_cluster();
    float inputs[2];  // s, n
    {
        const Rows rows[1] = {rows_of_peer(place, shared.exchanged[kUpdateHidden])};
        multiply(place, rows, update_hidden, shared, inputs);
    }
    const float norm =
        inputs[1] / sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2] + static_cast<float>(kNormFloor));  // (dE/dn) / n
    const float both = gate * scalar;
#pragma unroll
    for (int k = 0; k < 3; ++k) {
        shared.exchanged[kMixedU + k][threadIdx.x] = vector_gate * vectors[k] + both * v[k];
        shared.exchanged[kMixedV + k][threadIdx.x] = both * u[k] + norm * v[k];
    }
    meet_cluster();
    float* gradient = stage.gradient + atom * (kGradientRows * F) + place.channel;
    Stored* gathered = nullptr;
    if constexpr (kIsFast<Stored>)
        if (stage.gathered) gathered = stage.gathered + atom * (kGradientRows * F) + place.channel;
    if (place.has_atom) {
        gradient[0] = scalar + inputs[0];
        if (gathered) store_number(gathered, scalar + inputs[0]);
    }
#pragma unroll
    for (int k = 0; k < 3; ++k) {
        const Rows u_rows = rows_of_peer(place, shared.exchanged[kMixedU + k]),
                   v_rows = rows_of_peer(place, shared.exchanged[kMixedV + k]);
        Sum sum = {};
        add_product(u_rows, mix.of[0][0], sum);
        add_product(v_rows, mix.of[1][0], sum);
        store_partial(place, sum, shared.partial[place.warp][k]);
    }
    float mixed[3];
    add_up(shared, mixed);
    if (place.has_atom)
#pragma unroll
        for (int k = 0; k < 3; ++k) {
            gradient[(1 + k) * F] = mixed[k] + vectors[k];
            if (gathered) store_number(gathered + (1 + k) * F, mixed[k] + vectors[k]);
        }
    meet_cluster();  // no block may exit while another one reads its shared memory
}

template <class Stage>
void launch_stage(const char* doing, void (*middle)(Stage), void (*last)(Stage), const Stage& stage,
                  cudaStream_t stream) {
    launch_clusters(doing, stage.is_last ? last : middle, (stage.atom_count + kRows - 1) / kRows, kClusterSize,
                    kThreads, sizeof(Shared), stream, stage);
}

}  // namespace

bool runs_in_clusters(int width, int64_t atom_count) {
    return width == F && atom_count <= few_atoms_for_clusters() &&
           can_launch_clusters("updating atoms", update_kernel<float, true>);
}
template <class Stored>
void update_atoms_in_clusters(const AtomStage<Stored>& stage, cudaStream_t stream) {
    launch_stage("updating atoms", update_kernel<Stored, false>, update_kernel<Stored, true>, stage, stream);
}
template <class Stored>
void reverse_atoms_in_clusters(const AtomReverse<Stored>& stage, cudaStream_t stream) {
    launch_stage("reversing atoms", reverse_kernel<Stored, false>, reverse_kernel<Stored, true>, stage, stream);
}

template void update_atoms_in_clusters(const AtomStage<float>&, cudaStream_t);
template void update_atoms_in_clusters(const AtomStage<__half>&, cudaStream_t);
template void reverse_atoms_in_clusters(const AtomReverse<float>&, cudaStream_t);
template void reverse_atoms_in_clusters(const AtomReverse<__half>&, cudaStream_t);

}  // namespace mlff::painn::gpu
