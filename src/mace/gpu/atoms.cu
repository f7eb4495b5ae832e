// SPDX-License-Identifier: MIT
#include "mace/gpu/atoms.h"
#include "mace/plan/names.h"

#include <algorithm>
#include <cstddef>

#include "equivariant/activation.h"
#include "equivariant/linear.h"
#include "gpu/engine/instructions.h"
#include "gpu/engine/warp.h"
#include "gpu/runtime/cuda_check.h"

namespace mlff::mace::gpu {
namespace {

using mlff::gpu::launch;
using mlff::gpu::LaunchShape;

// ---- division ----

// Launch of the two kernels: one block per atom.

template <class Real>
__device__ void scale_row(Real* row, int size, Real factor) {
    constexpr int kSize = kVectorSize<Real>;
#pragma unroll 4
    for (int k = static_cast<int>(threadIdx.x) * kSize; k < size; k += kBlockThreads * kSize) {
        Vector<Real> numbers = load_vector(row + k);
        for (int i = 0; i < kSize; ++i) numbers.at[i] *= factor;
        store_vector(row + k, numbers);
    }
}

template <class Real>
__global__ void __launch_bounds__(kBlockThreads)
    divide_kernel(Real constant, Real by_density, const Real* densities, Real* divisors, Real* rows, int size) {
    mlff::gpu::await_predecessor();
    const int64_t atom = blockIdx.x;
    const Real divisor = constant + by_density * densities[atom];
    scale_row(rows + atom * size, size, 1 / divisor);
    if (threadIdx.x == 0) divisors[atom] = divisor;
}

// `rows` may be the same array as `a`: a thread only scales numbers that no other thread reads.
template <class Real>
__global__ void __launch_bounds__(kBlockThreads)
    reverse_division_kernel(Real by_density, const Real* a, const Real* b, int dot_size, const Real* divisors,
                            Real* densities_gradient, Real* rows, int size) {
    mlff::gpu::await_predecessor();
    __shared__ Real partial[kWarps];
    constexpr int kSize = kVectorSize<Real>;
    const int64_t atom = blockIdx.x;
    Real dot = 0;
    if (by_density != 0) {
#pragma unroll 4
        for (int k = static_cast<int>(threadIdx.x) * kSize; k < dot_size; k += kBlockThreads * kSize) {
            const Vector<Real> x = load_vector(a + atom * dot_size + k), y = load_vector(b + atom * dot_size + k);
            for (int i = 0; i < kSize; ++i) dot += x.at[i] * y.at[i];
        }
        dot = sum_over_block(dot, partial);
    }
    const Real divisor = divisors[atom];
    if (threadIdx.x == 0) densities_gradient[atom] = -by_density * dot / divisor;
    scale_row(rows + atom * size, size, 1 / divisor);
}

// Launch: one warp per atom.
template <class Real>
__global__ void __launch_bounds__(kBlockThreads)
    copy_columns_kernel(int64_t atom_count, int count, const Real* from, int from_stride, double* to, int to_stride) {
    mlff::gpu::await_predecessor();
    const WarpOfAtom at;
    if (at.atom >= atom_count) return;
    for (int k = at.lane; k < count; k += 32) to[at.atom * to_stride + k] = from[at.atom * from_stride + k];
}

// ---- gates ----

// Launch of both kernels: one block per atom.
template <class Real>
__global__ void __launch_bounds__(kBlockThreads)
    gate_kernel(typename DeviceGate<Real>::View gate, const Real* in, Real* out) {
    mlff::gpu::await_predecessor();
    in += int64_t{blockIdx.x} * gate.in_size;
    out += int64_t{blockIdx.x} * gate.out_size;
    for (int k = static_cast<int>(threadIdx.x); k < gate.out_size; k += kBlockThreads) out[k] = Real(0);
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < gate.scalar_count; i += kBlockThreads)
        out[gate.scalars[i].to] =
            static_cast<Real>(activate(gate.scalar_activation, static_cast<double>(in[gate.scalars[i].from])));
    for (int i = static_cast<int>(threadIdx.x); i < gate.gated_count; i += kBlockThreads) {
        const auto gated = gate.gated[i];
        const Real value = static_cast<Real>(activate(gate.gate_activation, static_cast<double>(in[gated.gate])));
        for (int m = 0; m < gated.components; ++m)
            out[gated.to + m * gated.to_stride] = value * in[gated.from + m * gated.from_stride];
    }
}

template <class Real>
__global__ void __launch_bounds__(kBlockThreads)
    reverse_gate_kernel(typename DeviceGate<Real>::View gate, const Real* in, const Real* out_gradient,
                        Real* in_gradient) {
    mlff::gpu::await_predecessor();
    in += int64_t{blockIdx.x} * gate.in_size;
    in_gradient += int64_t{blockIdx.x} * gate.in_size;
    out_gradient += int64_t{blockIdx.x} * gate.out_size;
    for (int k = static_cast<int>(threadIdx.x); k < gate.in_size; k += kBlockThreads) in_gradient[k] = Real(0);
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < gate.scalar_count; i += kBlockThreads) {
        const auto scalar = gate.scalars[i];
        in_gradient[scalar.from] =
            out_gradient[scalar.to] *
            static_cast<Real>(activation_slope(gate.scalar_activation, static_cast<double>(in[scalar.from])));
    }
    for (int i = static_cast<int>(threadIdx.x); i < gate.gated_count; i += kBlockThreads) {
        const auto gated = gate.gated[i];
        const auto x = static_cast<double>(in[gated.gate]);
        const Real value = static_cast<Real>(activate(gate.gate_activation, x));
        Real sum = 0;
        for (int m = 0; m < gated.components; ++m) {
            const Real gradient = out_gradient[gated.to + m * gated.to_stride];
            sum += gradient * in[gated.from + m * gated.from_stride];
            in_gradient[gated.from + m * gated.from_stride] = value * gradient;
        }
        in_gradient[gated.gate] = sum * static_cast<Real>(activation_slope(gate.gate_activation, x));
    }
}

// ---- readouts ----

// Launch of all kernels: one block per atom.

// out[j] = bias[j] + sum over i of in[i] matrix[i][j]. Threads divide the outputs among them and, if there are more
// threads than outputs, the inputs too. All threads must call it; it synchronises the block. `in`, `out` and `partial`
// [kBlockThreads] are shared memory.
__device__ void affine(int in_count, int out_count, const double* matrix, const double* bias, const double* in,
                       double* partial, double* out) {
    const int thread = static_cast<int>(threadIdx.x);
    for (int begin = 0; begin < out_count; begin += kBlockThreads) {
        const int width = min(kBlockThreads, out_count - begin), part_count = kBlockThreads / width;
        const int part = thread / width, j = begin + thread % width;
        if (part < part_count) {
            double sum = 0;
#pragma unroll 8
            for (int i = part; i < in_count; i += part_count) sum += in[i] * matrix[int64_t{i} * out_count + j];
            partial[thread] = sum;
        }
        __syncthreads();
        if (part == 0) {
            double sum = bias[j];
            for (int p = 0; p < part_count; ++p) sum += partial[p * width + thread];
            out[j] = sum;
        }
        __syncthreads();
    }
}

// Shared memory of a block, for readouts with hidden layers.
struct ReadoutRoom {
    double *features, *partial;  // [feature], [kBlockThreads]
    double *hidden, *second;     // inputs of the activations
    double* activated;           // [hidden]: output of the activation; later in the reverse, the gradient of `hidden`
    double* second_gradient;

    template <class View>
    __device__ ReadoutRoom(const View& readout, double* first) {
        features = first;
        partial = features + readout.feature_count;
        hidden = partial + kBlockThreads;
        activated = hidden + readout.hidden_count;
        second = activated + readout.hidden_count;
        second_gradient = second + readout.second_count;
    }
    template <class View>
    static size_t bytes(const View& readout) {
        return readout.hidden_count == 0 ? 0
                                         : static_cast<size_t>(readout.feature_count + kBlockThreads +
                                                               2 * (readout.hidden_count + readout.second_count)) *
                                               sizeof(double);
    }
};

// One thread of the block must call this.
template <class Real>
__device__ void write_energy(const ReadoutTask<Real>& task, double energy) {
    double* to = task.energies + blockIdx.x;
    if (task.adds_energies) energy += *to;
    *to = task.is_last ? mlff::gpu::finished_energy(task.energy, blockIdx.x, energy) : energy;
}

// The row of gradients, which numbers may be added to afterwards. All threads must call this; it synchronises the
// block.
template <class Real>
__device__ Real* start_gradient(const ReadoutTask<Real>& task, int row_size) {
    Real* row = task.features_gradient + int64_t{blockIdx.x} * row_size;
    if (!task.adds_gradient)
        for (int k = static_cast<int>(threadIdx.x); k < row_size; k += kBlockThreads) row[k] = 0;
    __syncthreads();
    return row;
}

template <class Real>
__global__ void __launch_bounds__(kBlockThreads)
    linear_readout_kernel(typename DeviceReadout<Real>::View readout, const Real* features, ReadoutTask<Real> task) {
    mlff::gpu::await_predecessor();
    __shared__ double partial[kWarps];
    const Real* row = features + int64_t{blockIdx.x} * readout.row_size;
    double sum = 0;
    for (int d = static_cast<int>(threadIdx.x); d < readout.feature_count; d += kBlockThreads)
        sum += readout.first[d] * static_cast<double>(row[readout.places[d]]);
    sum = sum_over_block(sum, partial);
    if (threadIdx.x == 0) write_energy(task, sum + readout.last_bias);
    if (!task.features_gradient) return;
    Real* gradient = start_gradient(task, readout.row_size);
    for (int d = static_cast<int>(threadIdx.x); d < readout.feature_count; d += kBlockThreads)
        gradient[readout.places[d]] += static_cast<Real>(task.energy.scale * readout.first[d]);
}

template <class Real>
__global__ void __launch_bounds__(kBlockThreads)
    readout_kernel(typename DeviceReadout<Real>::View readout, const Real* features, ReadoutTask<Real> task) {
    mlff::gpu::await_predecessor();
    const ReadoutRoom room(readout, reinterpret_cast<double*>(mlff::gpu::launched_shared_memory()));
    const int thread = static_cast<int>(threadIdx.x);
    const Real* row = features + int64_t{blockIdx.x} * readout.row_size;
    for (int d = thread; d < readout.feature_count; d += kBlockThreads)
        room.features[d] = static_cast<double>(row[readout.places[d]]);
    __syncthreads();
    affine(readout.feature_count, readout.hidden_count, readout.first, readout.first_bias, room.features, room.partial,
           room.hidden);
    if (readout.middle) {
        for (int i = thread; i < readout.hidden_count; i += kBlockThreads)
            room.activated[i] = activate(readout.activation, room.hidden[i]);
        __syncthreads();
        affine(readout.hidden_count, readout.second_count, readout.middle, readout.middle_bias, room.activated,
               room.partial, room.second);
    }
    const double* before = readout.middle ? room.second : room.hidden;
    const int count = readout.middle ? readout.second_count : readout.hidden_count;
    double sum = 0;
    for (int j = thread; j < count; j += kBlockThreads)
        sum += readout.last[j] * activate(readout.activation, before[j]);
    sum = sum_over_block(sum, room.partial);
    if (thread == 0) write_energy(task, sum + readout.last_bias);
    if (!task.features_gradient) return;

    double* before_gradient = readout.middle ? room.second_gradient : room.activated;
    for (int j = thread; j < count; j += kBlockThreads)
        before_gradient[j] = task.energy.scale * readout.last[j] * activation_slope(readout.activation, before[j]);
    __syncthreads();
    if (readout.middle) {
        for (int i = thread; i < readout.hidden_count; i += kBlockThreads) {
            double by_hidden = 0;
            for (int j = 0; j < readout.second_count; ++j)
                by_hidden += readout.middle[int64_t{i} * readout.second_count + j] * room.second_gradient[j];
            room.activated[i] = by_hidden * activation_slope(readout.activation, room.hidden[i]);
        }
        __syncthreads();
    }
    Real* gradient = start_gradient(task, readout.row_size);
    for (int d = thread; d < readout.feature_count; d += kBlockThreads) {
        double by_feature = 0;
#pragma unroll 8
        for (int j = 0; j < readout.hidden_count; ++j)
            by_feature += readout.first_by_hidden[int64_t{j} * readout.feature_count + d] * room.activated[j];
        gradient[readout.places[d]] += static_cast<Real>(by_feature);
    }
}

// A linear map as a matrix [in][out], and its bias.
struct Matrix {
    std::vector<double> numbers, bias;
};
Matrix matrix_of(const Linear& linear) {
    const auto in = static_cast<size_t>(linear.in.dimension()), out = static_cast<size_t>(linear.out.dimension());
    Matrix matrix;
    matrix.numbers.resize(in * out);
    matrix.bias = linear.bias.empty() ? std::vector<double>(out, 0.0) : linear.bias;
    std::vector<double> unit(in, 0.0);
    for (size_t i = 0; i < in; ++i) {
        unit[i] = 1;
        compute_linear(linear, 0, unit.data(), matrix.numbers.data() + i * out);
        unit[i] = 0;
        for (size_t j = 0; j < linear.bias.size(); ++j) matrix.numbers[i * out + j] -= linear.bias[j];
    }
    return matrix;
}

// Drops inputs whose weights are all zero, such as vectors.
void drop_unused_inputs(Matrix& matrix, std::vector<int32_t>& places) {
    const size_t width = matrix.bias.size();
    size_t kept = 0;
    for (size_t i = 0; i < places.size(); ++i) {
        const auto from = matrix.numbers.begin() + static_cast<std::ptrdiff_t>(i * width),
                   end = from + static_cast<std::ptrdiff_t>(width);
        if (std::all_of(from, end, [](double number) { return number == 0; })) continue;
        std::copy(from, end, matrix.numbers.begin() + static_cast<std::ptrdiff_t>(kept * width));
        places[kept++] = places[i];
    }
    matrix.numbers.resize(kept * width);
    places.resize(kept);
}

}  // namespace

template <class Real>
void divide_rows(int64_t atom_count, Real constant, Real by_density, const Real* densities, Real* divisors, Real* rows,
                 int size, cudaStream_t stream) {
    if (atom_count > 0)
        launch("dividing messages", divide_kernel<Real>, atom_count, kBlockThreads, stream, constant, by_density,
               densities, divisors, rows, size);
}

template <class Real>
void reverse_division(int64_t atom_count, Real by_density, const Real* a, const Real* b, int dot_size,
                      const Real* divisors, Real* densities_gradient, Real* rows, int size, cudaStream_t stream) {
    if (atom_count > 0)
        launch("reversing a division", reverse_division_kernel<Real>, atom_count, kBlockThreads, stream, by_density, a,
               b, dot_size, divisors, densities_gradient, rows, size);
}

template <class Real>
void copy_columns(int64_t atom_count, int count, const Real* from, int from_stride, double* to, int to_stride,
                  cudaStream_t stream) {
    if (atom_count > 0)
        launch("copying columns", copy_columns_kernel<Real>, blocks_of_atoms(atom_count), kBlockThreads, stream,
               atom_count, count, from, from_stride, to, to_stride);
}

template <class Real>
DeviceGate<Real>::DeviceGate(const plan::GatePlan<Real>& plan, cudaStream_t stream) {
    std::vector<Scalar> scalars;
    std::vector<Gated> gated;
    size_t out_block = 0;
    for (int count = 0; count < plan.gate.scalar_count; count += plan.out_layout.blocks[out_block++].copies)
        for (int u = 0; u < plan.out_layout.blocks[out_block].copies; ++u)
            scalars.push_back({plan.scalar_at[scalars.size()], plan.out_layout.blocks[out_block].offset + u});
    size_t in_block = plan.in_layout.blocks.size() - (plan.out_layout.blocks.size() - out_block);
    for (; out_block < plan.out_layout.blocks.size(); ++out_block, ++in_block) {
        const plan::RowBlock &in = plan.in_layout.blocks[in_block], &out = plan.out_layout.blocks[out_block];
        for (int u = 0; u < out.copies; ++u)
            gated.push_back({plan.gate_at(static_cast<int>(gated.size())), in.offset + u, in.stride, out.offset + u,
                             out.stride, out.components});
    }
    upload(scalars_, scalars, stream);
    upload(gated_, gated, stream);
    view_ = {
        scalars_.data(),     gated_.data(),        static_cast<int>(scalars.size()), static_cast<int>(gated.size()),
        plan.in_layout.size, plan.out_layout.size, plan.gate.scalar_activation,      plan.gate.gate_activation};
}

template <class Real>
void DeviceGate<Real>::apply(int64_t atom_count, const Real* in, Real* out, cudaStream_t stream) const {
    if (atom_count > 0) launch("a gate", gate_kernel<Real>, atom_count, kBlockThreads, stream, view_, in, out);
}

template <class Real>
void DeviceGate<Real>::reverse(int64_t atom_count, const Real* in, const Real* out_gradient, Real* in_gradient,
                               cudaStream_t stream) const {
    if (atom_count > 0)
        launch("reversing a gate", reverse_gate_kernel<Real>, atom_count, kBlockThreads, stream, view_, in,
               out_gradient, in_gradient);
}

template <class Real>
DeviceReadout<Real>::DeviceReadout(const Readout& readout, int head, const Irreps& irreps,
                                   const plan::RowLayout& layout, cudaStream_t stream) {
    std::vector<int32_t> places;
    for (size_t b = 0; b < layout.blocks.size(); ++b)
        for (int u = 0; u < layout.blocks[b].copies; ++u)
            for (int m = 0; m < layout.blocks[b].components; ++m)
                places.push_back(layout.blocks[b].offset + m * layout.blocks[b].stride + u);
    if (static_cast<int>(places.size()) != readout.first.in.dimension() ||
        irreps.dimension() != readout.first.in.dimension())
        fail(Status::internal, "a readout does not fit its layer");
    const auto column = static_cast<size_t>(readout.column_count() == 1 ? 0 : head);
    const auto column_of = [&](const Matrix& matrix, size_t width) {
        std::vector<double> numbers;
        for (size_t i = column; i < matrix.numbers.size(); i += width) numbers.push_back(matrix.numbers[i]);
        return numbers;
    };
    // Hidden units of other heads must not contribute: sets the weights after them to zero.
    const auto mask_rows = [&](std::vector<double>& numbers, size_t rows) {
        for (size_t i = 0; i < numbers.size(); ++i)
            if (readout.head_slices > 1 &&
                i / (numbers.size() / rows) * static_cast<size_t>(readout.head_slices) / rows !=
                    static_cast<size_t>(head))
                numbers[i] = 0;
    };
    Matrix first = matrix_of(readout.first);
    drop_unused_inputs(first, places);
    view_.feature_count = static_cast<int>(places.size());
    view_.row_size = layout.size;
    view_.activation = readout.activation;
    upload(places_, places, stream);
    if (!readout.last) {
        upload(first_, column_of(first, static_cast<size_t>(readout.first.out.dimension())), stream);
        view_.last_bias = first.bias[column];
    } else {
        const Matrix last = matrix_of(*readout.last);
        std::vector<double> last_column = column_of(last, static_cast<size_t>(readout.last->out.dimension()));
        view_.hidden_count = readout.first.out.dimension();
        std::vector<double> by_hidden(first.numbers.size());
        const auto hidden_count = static_cast<size_t>(view_.hidden_count);
        for (size_t d = 0; d < places.size(); ++d)
            for (size_t j = 0; j < hidden_count; ++j)
                by_hidden[j * places.size() + d] = first.numbers[d * hidden_count + j];
        upload(first_, first.numbers, stream);
        upload(first_by_hidden_, by_hidden, stream);
        upload(first_bias_, first.bias, stream);
        if (readout.middle) {
            Matrix middle = matrix_of(*readout.middle);
            view_.second_count = readout.middle->out.dimension();
            mask_rows(middle.numbers, static_cast<size_t>(view_.hidden_count));
            upload(middle_, middle.numbers, stream);
            upload(middle_bias_, middle.bias, stream);
        }
        mask_rows(last_column, last_column.size());
        upload(last_, last_column, stream);
        view_.last_bias = last.bias[column];
    }
    if (view_.hidden_count + view_.second_count > kMostHidden)
        fail(Status::unsupported, "a readout with more than ", kMostHidden, " hidden units on the GPU");
    view_.places = places_.data();
    view_.first = first_.data();
    view_.first_by_hidden = first_by_hidden_.data();
    view_.first_bias = first_bias_.data();
    view_.middle = readout.middle ? middle_.data() : nullptr;
    view_.middle_bias = middle_bias_.data();
    view_.last = last_.data();
}

template <class Real>
void DeviceReadout<Real>::compute(int64_t atom_count, const Real* features, const ReadoutTask<Real>& task,
                                  cudaStream_t stream) const {
    if (atom_count == 0) return;
    const LaunchShape shape = {dim3(static_cast<unsigned>(atom_count)), kBlockThreads, ReadoutRoom::bytes(view_)};
    launch("a readout", view_.hidden_count == 0 ? linear_readout_kernel<Real> : readout_kernel<Real>, shape, stream,
           view_, features, task);
}

#define MLFF_INSTANTIATE(Real)                                                                                         \
    template void divide_rows<Real>(int64_t, Real, Real, const Real*, Real*, Real*, int, cudaStream_t);                \
    template void reverse_division<Real>(int64_t, Real, const Real*, const Real*, int, const Real*, Real*, Real*, int, \
                                         cudaStream_t);                                                                \
    template void copy_columns<Real>(int64_t, int, const Real*, int, double*, int, cudaStream_t);                      \
    template class DeviceGate<Real>;                                                                                   \
    template class DeviceReadout<Real>;
MLFF_INSTANTIATE(float)
MLFF_INSTANTIATE(double)
#undef MLFF_INSTANTIATE

}  // namespace mlff::mace::gpu
