// SPDX-License-Identifier: MIT
#include "mace/cuda/atoms.h"

#include "device/cuda_check.h"
#include "mace/reference/activation.h"
#include "mace/reference/linear.h"

namespace mlff::mace::cuda {
namespace {

using mlff::cuda::launch;
using mlff::cuda::LaunchShape;
using reference::activate;
using reference::activation_slope;

constexpr unsigned kAllLanes = 0xffffffffu;

template <class Number>
__device__ Number sum_over_warp(Number value) {
    for (int distance = 16; distance >= 1; distance /= 2) value += __shfl_xor_sync(kAllLanes, value, distance);
    return value;
}
int64_t blocks_of_atoms(int64_t atom_count) { return (atom_count + kWarps - 1) / kWarps; }

// ---- division ----

// Launch: a block for each atom.
template <class Real>
__global__ void __launch_bounds__(kBlockThreads) divide_kernel(Real constant, Real by_density, const Real* densities, Real* divisors, Real* rows, int size) {
    const int64_t atom = blockIdx.x;
    const Real divisor = constant + by_density * densities[atom];
    for (int k = static_cast<int>(threadIdx.x); k < size; k += kBlockThreads) rows[atom * size + k] *= 1 / divisor;
    if (threadIdx.x == 0) divisors[atom] = divisor;
}

// Launch: a warp for each atom.
template <class Real>
__global__ void __launch_bounds__(kBlockThreads) reverse_division_kernel(int64_t atom_count, Real by_density, const Real* a, const Real* b, int dot_size,
                                                                         const Real* divisors, Real* densities_gradient, Real* rows, int size) {
    const int64_t atom = (blockIdx.x * int64_t{kBlockThreads} + threadIdx.x) / 32;
    const int lane = static_cast<int>(threadIdx.x % 32);
    if (atom >= atom_count) return;
    Real dot = 0;
    if (by_density != 0)
        for (int k = lane; k < dot_size; k += 32) dot += a[atom * dot_size + k] * b[atom * dot_size + k];
    dot = sum_over_warp(dot);
    const Real divisor = divisors[atom];
    if (lane == 0) densities_gradient[atom] = -by_density * dot / divisor;
#pragma unroll 8
    for (int k = lane; k < size; k += 32) rows[atom * size + k] /= divisor;
}

// Launch: a warp for each atom.
template <class Real>
__global__ void __launch_bounds__(kBlockThreads) copy_columns_kernel(int64_t atom_count, int count, const Real* from, int from_stride, double* to, int to_stride) {
    const int64_t atom = (blockIdx.x * int64_t{kBlockThreads} + threadIdx.x) / 32;
    if (atom >= atom_count) return;
    for (int k = static_cast<int>(threadIdx.x % 32); k < count; k += 32) to[atom * to_stride + k] = from[atom * from_stride + k];
}

// ---- gates ----

// Launch: a block for each atom.
template <class Real>
__global__ void __launch_bounds__(kBlockThreads) gate_kernel(typename DeviceGate<Real>::View gate, const Real* in, Real* out) {
    in += int64_t{blockIdx.x} * gate.in_size;
    out += int64_t{blockIdx.x} * gate.out_size;
    for (int k = static_cast<int>(threadIdx.x); k < gate.out_size; k += kBlockThreads) out[k] = Real(0);
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < gate.scalar_count; i += kBlockThreads)
        out[gate.scalars[i].to] = static_cast<Real>(activate(gate.scalar_activation, static_cast<double>(in[gate.scalars[i].from])));
    for (int i = static_cast<int>(threadIdx.x); i < gate.gated_count; i += kBlockThreads) {
        const auto gated = gate.gated[i];
        const Real value = static_cast<Real>(activate(gate.gate_activation, static_cast<double>(in[gated.gate])));
        for (int m = 0; m < gated.components; ++m) out[gated.to + m * gated.to_stride] = value * in[gated.from + m * gated.from_stride];
    }
}

template <class Real>
__global__ void __launch_bounds__(kBlockThreads) reverse_gate_kernel(typename DeviceGate<Real>::View gate, const Real* in, const Real* out_gradient, Real* in_gradient) {
    in += int64_t{blockIdx.x} * gate.in_size;
    in_gradient += int64_t{blockIdx.x} * gate.in_size;
    out_gradient += int64_t{blockIdx.x} * gate.out_size;
    for (int k = static_cast<int>(threadIdx.x); k < gate.in_size; k += kBlockThreads) in_gradient[k] = Real(0);
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < gate.scalar_count; i += kBlockThreads) {
        const auto scalar = gate.scalars[i];
        in_gradient[scalar.from] = out_gradient[scalar.to] * static_cast<Real>(activation_slope(gate.scalar_activation, static_cast<double>(in[scalar.from])));
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

// What the hidden layers are given: before[j] = bias[j] + sum over i of x[i] matrix[i][j]
template <class Input>
__device__ void affine(int lane, int in_count, int out_count, const double* matrix, const double* bias, const Input& input, double* before) {
    for (int j = lane; j < out_count; j += 32) {
        double sum = bias[j];
#pragma unroll 8
        for (int i = 0; i < in_count; ++i) sum += input(i) * matrix[int64_t{i} * out_count + j];
        before[j] = sum;
    }
    __syncwarp();
}

// Launch: a warp for each atom, with room for its hidden layers in shared memory.
template <class Real, bool kReverse>
__global__ void __launch_bounds__(kBlockThreads) readout_kernel(typename DeviceReadout<Real>::View readout, int64_t atom_count, const Real* features, double* energies,
                                                                double scale, Real* features_gradient) {
    extern __shared__ __align__(16) double hidden_layers[];
    const int64_t atom = (blockIdx.x * int64_t{kBlockThreads} + threadIdx.x) / 32;
    const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
    if (atom >= atom_count) return;
    const Real* row = features + atom * readout.row_size;
    Real* gradient_row = features_gradient + atom * readout.row_size;
    const auto feature = [&](int d) { return static_cast<double>(row[readout.places[d]]); };
    if (readout.hidden_count == 0) {
        double sum = 0;
        for (int d = lane; d < readout.feature_count; d += 32) {
            if constexpr (kReverse)
                gradient_row[readout.places[d]] += static_cast<Real>(scale * readout.first[d]);
            else
                sum += readout.first[d] * feature(d);
        }
        if constexpr (!kReverse) {
            sum = sum_over_warp(sum);
            if (lane == 0) energies[atom] += sum + readout.last_bias;
        }
        return;
    }
    double* hidden = hidden_layers + warp * 2 * (readout.hidden_count + readout.second_count);
    double* second = hidden + readout.hidden_count;
    double* hidden_gradient = second + readout.second_count;
    double* second_gradient = hidden_gradient + readout.hidden_count;
    affine(lane, readout.feature_count, readout.hidden_count, readout.first, readout.first_bias, feature, hidden);
    const auto active = [&](int i) { return activate(readout.activation, hidden[i]); };
    if (readout.middle) affine(lane, readout.hidden_count, readout.second_count, readout.middle, readout.middle_bias, active, second);
    const double* before = readout.middle ? second : hidden;
    const int count = readout.middle ? readout.second_count : readout.hidden_count;
    if constexpr (!kReverse) {
        double sum = 0;
        for (int j = lane; j < count; j += 32) sum += readout.last[j] * activate(readout.activation, before[j]);
        sum = sum_over_warp(sum);
        if (lane == 0) energies[atom] += sum + readout.last_bias;
        return;
    }
    double* before_gradient = readout.middle ? second_gradient : hidden_gradient;
    for (int j = lane; j < count; j += 32) before_gradient[j] = scale * readout.last[j] * activation_slope(readout.activation, before[j]);
    __syncwarp();
    if (readout.middle) {
        for (int i = lane; i < readout.hidden_count; i += 32) {
            double sum = 0;
            for (int j = 0; j < readout.second_count; ++j) sum += readout.middle[int64_t{i} * readout.second_count + j] * second_gradient[j];
            hidden_gradient[i] = sum * activation_slope(readout.activation, hidden[i]);
        }
        __syncwarp();
    }
    for (int d = lane; d < readout.feature_count; d += 32) {
        double sum = 0;
#pragma unroll 8
        for (int j = 0; j < readout.hidden_count; ++j) sum += readout.first[int64_t{d} * readout.hidden_count + j] * hidden_gradient[j];
        gradient_row[readout.places[d]] += static_cast<Real>(sum);
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
        reference::compute_linear(linear, 0, unit.data(), matrix.numbers.data() + i * out);
        unit[i] = 0;
        for (size_t j = 0; j < linear.bias.size(); ++j) matrix.numbers[i * out + j] -= linear.bias[j];
    }
    return matrix;
}

template <class T>
void upload(mlff::cuda::DeviceBuffer<T>& buffer, const std::vector<T>& host, cudaStream_t stream) {
    buffer.upload(host.data(), static_cast<int64_t>(host.size()), "the model", stream);
}

}  // namespace

template <class Real>
void divide_rows(int64_t atom_count, Real constant, Real by_density, const Real* densities, Real* divisors, Real* rows, int size, cudaStream_t stream) {
    if (atom_count > 0) launch("dividing messages", divide_kernel<Real>, atom_count, kBlockThreads, stream, constant, by_density, densities, divisors, rows, size);
}

template <class Real>
void reverse_division(int64_t atom_count, Real by_density, const Real* a, const Real* b, int dot_size, const Real* divisors, Real* densities_gradient, Real* rows, int size,
                      cudaStream_t stream) {
    if (atom_count > 0)
        launch("reversing a division", reverse_division_kernel<Real>, blocks_of_atoms(atom_count), kBlockThreads, stream, atom_count, by_density, a, b, dot_size, divisors,
               densities_gradient, rows, size);
}

template <class Real>
void copy_columns(int64_t atom_count, int count, const Real* from, int from_stride, double* to, int to_stride, cudaStream_t stream) {
    if (atom_count > 0)
        launch("copying columns", copy_columns_kernel<Real>, blocks_of_atoms(atom_count), kBlockThreads, stream, atom_count, count, from, from_stride, to, to_stride);
}

template <class Real>
DeviceGate<Real>::DeviceGate(const cpu::GatePlan<Real>& plan, cudaStream_t stream) {
    std::vector<Scalar> scalars;
    std::vector<Gated> gated;
    size_t out_block = 0;
    for (int count = 0; count < plan.gate.scalar_count; count += plan.out_layout.blocks[out_block++].copies)
        for (int u = 0; u < plan.out_layout.blocks[out_block].copies; ++u)
            scalars.push_back({plan.scalar_at[scalars.size()], plan.out_layout.blocks[out_block].offset + u});
    size_t in_block = plan.in_layout.blocks.size() - (plan.out_layout.blocks.size() - out_block);
    for (; out_block < plan.out_layout.blocks.size(); ++out_block, ++in_block) {
        const cpu::RowBlock &in = plan.in_layout.blocks[in_block], &out = plan.out_layout.blocks[out_block];
        for (int u = 0; u < out.copies; ++u)
            gated.push_back({plan.gate_at(static_cast<int>(gated.size())), in.offset + u, in.stride, out.offset + u, out.stride, out.components});
    }
    upload(scalars_, scalars, stream);
    upload(gated_, gated, stream);
    view_ = {scalars_.data(),        gated_.data(),        static_cast<int>(scalars.size()), static_cast<int>(gated.size()),
             plan.in_layout.size,    plan.out_layout.size, plan.gate.scalar_activation,      plan.gate.gate_activation};
}

template <class Real>
void DeviceGate<Real>::apply(int64_t atom_count, const Real* in, Real* out, cudaStream_t stream) const {
    if (atom_count > 0) launch("a gate", gate_kernel<Real>, atom_count, kBlockThreads, stream, view_, in, out);
}

template <class Real>
void DeviceGate<Real>::reverse(int64_t atom_count, const Real* in, const Real* out_gradient, Real* in_gradient, cudaStream_t stream) const {
    if (atom_count > 0) launch("reversing a gate", reverse_gate_kernel<Real>, atom_count, kBlockThreads, stream, view_, in, out_gradient, in_gradient);
}

template <class Real>
DeviceReadout<Real>::DeviceReadout(const Readout& readout, int head, const Irreps& irreps, const cpu::RowLayout& layout, cudaStream_t stream) {
    std::vector<int32_t> places;
    for (size_t b = 0; b < layout.blocks.size(); ++b)
        for (int u = 0; u < layout.blocks[b].copies; ++u)
            for (int m = 0; m < layout.blocks[b].components; ++m) places.push_back(layout.blocks[b].offset + m * layout.blocks[b].stride + u);
    if (static_cast<int>(places.size()) != readout.first.in.dimension() || irreps.dimension() != readout.first.in.dimension())
        fail(Status::internal, "a readout does not fit its layer");
    const auto column = static_cast<size_t>(readout.column_count() == 1 ? 0 : head);
    const auto column_of = [&](const Matrix& matrix, size_t width) {
        std::vector<double> numbers;
        for (size_t i = column; i < matrix.numbers.size(); i += width) numbers.push_back(matrix.numbers[i]);
        return numbers;
    };
    // Hidden units of other heads count nothing: the weights after them are zero.
    const auto mask_rows = [&](std::vector<double>& numbers, size_t rows) {
        for (size_t i = 0; i < numbers.size(); ++i)
            if (readout.head_slices > 1 && i / (numbers.size() / rows) * static_cast<size_t>(readout.head_slices) / rows != static_cast<size_t>(head)) numbers[i] = 0;
    };
    const Matrix first = matrix_of(readout.first);
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
        upload(first_, first.numbers, stream);
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
    if (view_.hidden_count + view_.second_count > kMostHidden) fail(Status::unsupported, "a readout with more than ", kMostHidden, " hidden units on the GPU");
    view_.places = places_.data();
    view_.first = first_.data();
    view_.first_bias = first_bias_.data();
    view_.middle = readout.middle ? middle_.data() : nullptr;
    view_.middle_bias = middle_bias_.data();
    view_.last = last_.data();
}

template <class Real>
void DeviceReadout<Real>::compute(int64_t atom_count, const Real* features, double* energies, cudaStream_t stream) const {
    if (atom_count == 0) return;
    const LaunchShape shape = {dim3(static_cast<unsigned>(blocks_of_atoms(atom_count))), kBlockThreads,
                               static_cast<size_t>(kWarps * 2 * (view_.hidden_count + view_.second_count)) * sizeof(double)};
    launch("a readout", readout_kernel<Real, false>, shape, stream, view_, atom_count, features, energies, 0.0, static_cast<Real*>(nullptr));
}

template <class Real>
void DeviceReadout<Real>::reverse(int64_t atom_count, const Real* features, double scale, Real* features_gradient, cudaStream_t stream) const {
    if (atom_count == 0) return;
    const LaunchShape shape = {dim3(static_cast<unsigned>(blocks_of_atoms(atom_count))), kBlockThreads,
                               static_cast<size_t>(kWarps * 2 * (view_.hidden_count + view_.second_count)) * sizeof(double)};
    launch("reversing a readout", readout_kernel<Real, true>, shape, stream, view_, atom_count, features, static_cast<double*>(nullptr), scale, features_gradient);
}

#define MLFF_INSTANTIATE(Real)                                                                                              \
    template void divide_rows<Real>(int64_t, Real, Real, const Real*, Real*, Real*, int, cudaStream_t);                     \
    template void reverse_division<Real>(int64_t, Real, const Real*, const Real*, int, const Real*, Real*, Real*, int, cudaStream_t); \
    template void copy_columns<Real>(int64_t, int, const Real*, int, double*, int, cudaStream_t);                           \
    template class DeviceGate<Real>;                                                                                        \
    template class DeviceReadout<Real>;
MLFF_INSTANTIATE(float)
MLFF_INSTANTIATE(double)
#undef MLFF_INSTANTIATE

}  // namespace mlff::mace::cuda
