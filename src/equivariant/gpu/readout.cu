// SPDX-License-Identifier: MIT
#include "equivariant/gpu/readout.h"

#include <algorithm>
#include <cstddef>

#include "core/error.h"
#include "gpu/engine/instructions.h"
#include "gpu/engine/warp.h"
#include "gpu/runtime/cuda_check.h"

namespace mlff::equivariant::gpu {
namespace {

using mlff::gpu::launch;

using mlff::gpu::LaunchShape;

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
    const double scale = mlff::gpu::energy_scale(task.energy, blockIdx.x);
    Real* gradient = start_gradient(task, readout.row_size);
    for (int d = static_cast<int>(threadIdx.x); d < readout.feature_count; d += kBlockThreads)
        gradient[readout.places[d]] += static_cast<Real>(scale * readout.first[d]);
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

    const double scale = mlff::gpu::energy_scale(task.energy, blockIdx.x);
    double* before_gradient = readout.middle ? room.second_gradient : room.activated;
    for (int j = thread; j < count; j += kBlockThreads)
        before_gradient[j] = scale * readout.last[j] * activation_slope(readout.activation, before[j]);
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

// Drops features whose weights are all zero, such as vectors.
void drop_unused_features(ReadoutMatrices& matrices, std::vector<int32_t>& places) {
    const size_t width = matrices.first_bias.size();
    size_t kept = 0;
    for (size_t i = 0; i < places.size(); ++i) {
        const auto from = matrices.first.begin() + static_cast<std::ptrdiff_t>(i * width),
                   end = from + static_cast<std::ptrdiff_t>(width);
        if (std::all_of(from, end, [](double number) { return number == 0; })) continue;
        std::copy(from, end, matrices.first.begin() + static_cast<std::ptrdiff_t>(kept * width));
        places[kept++] = places[i];
    }
    matrices.first.resize(kept * width);
    places.resize(kept);
}

}  // namespace

template <class Real>
DeviceReadout<Real>::DeviceReadout(ReadoutMatrices matrices, const RowLayout& layout, cudaStream_t stream) {
    std::vector<int32_t> places;
    for (const RowBlock& block : layout.blocks)
        for (int u = 0; u < block.copies; ++u)
            for (int m = 0; m < block.components; ++m) places.push_back(block.offset + m * block.stride + u);
    const size_t width = matrices.first_bias.size();
    if (width == 0 || matrices.first.size() != places.size() * width)
        fail(Status::internal, "a readout does not fit its layer");
    drop_unused_features(matrices, places);
    const bool is_linear = matrices.last.empty();
    view_.feature_count = static_cast<int>(places.size());
    view_.hidden_count = is_linear ? 0 : static_cast<int>(width);
    view_.second_count = static_cast<int>(matrices.middle_bias.size());
    view_.row_size = layout.size;
    view_.activation = matrices.activation;
    view_.last_bias = is_linear ? matrices.first_bias.front() : matrices.last_bias;
    if (view_.hidden_count + view_.second_count > kMostHidden)
        fail(Status::unsupported, "a readout with more than ", kMostHidden, " hidden units on the GPU");
    std::vector<double> by_hidden(is_linear ? 0 : matrices.first.size());
    for (size_t i = 0; i < by_hidden.size(); ++i) by_hidden[i % width * places.size() + i / width] = matrices.first[i];
    upload(places_, places, stream);
    upload(first_, matrices.first, stream);
    upload(first_by_hidden_, by_hidden, stream);
    upload(first_bias_, matrices.first_bias, stream);
    upload(middle_, matrices.middle, stream);
    upload(middle_bias_, matrices.middle_bias, stream);
    upload(last_, matrices.last, stream);
    view_.places = places_.data();
    view_.first = first_.data();
    view_.first_by_hidden = first_by_hidden_.data();
    view_.first_bias = first_bias_.data();
    view_.middle = matrices.middle.empty() ? nullptr : middle_.data();
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

template class DeviceReadout<float>;
template class DeviceReadout<double>;

}  // namespace mlff::equivariant::gpu
